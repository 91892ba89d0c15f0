//! The files of one folder, by name. Folders in it are not looked into.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::intake::Intake;
use super::{DOCUMENTS_MAX, Document, Error, Fetched, Kind};
use crate::config::Source;

/// Reads the folder on a thread of its own: a slow disk must not hold up the other sources.
pub(super) async fn fetch(folder: &Path, source: &Source, kind: Kind) -> Result<Fetched, Error> {
    let (folder, source) = (folder.to_owned(), source.clone());
    let read = tokio::task::spawn_blocking(move || read(&folder, &source, kind));
    read.await.map_err(Error::unreadable)?
}

fn read(folder: &Path, source: &Source, kind: Kind) -> Result<Fetched, Error> {
    let mut intake = Intake::new(source, kind);
    for (name, path) in files(folder)? {
        let size = path.metadata().map_or(0, |metadata| metadata.len());
        if intake.admits(&name, size) {
            match read_file(&path, size) {
                Ok(bytes) => intake.fetched.documents.push(Document { name, bytes }),
                Err(error) => intake.leave_out(&name, format!("can not be read: {error}")),
            }
        }
    }
    Ok(intake.fetched)
}

fn files(folder: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let entries = folder.read_dir().map_err(Error::unreadable)?;
    let mut files: Vec<(String, PathBuf)> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_file())
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .collect();
    files.sort();
    files.truncate(DOCUMENTS_MAX);
    Ok(files)
}

/// At most `size` bytes: what a writer appends meanwhile is for the next run.
fn read_file(path: &Path, size: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}
