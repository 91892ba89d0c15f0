//! What several suites need: a folder of one's own.

use std::path::PathBuf;

/// A folder that goes with the value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("tailcar-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&path).unwrap();
        let folder = Self(path);
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.clone()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
