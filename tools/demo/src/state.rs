//! The state a rehearsal begins with: an empty database, or what the same rehearsal left behind.
//!
//! A database is cleared only if every dataset in it was made by a rehearsal. Any other is refused.

use std::io;
use std::path::Path;

use serde_json::json;
use store::audit;

use crate::lambda;
use crate::sandbox::Sandboxes;
use crate::stack::{self, Stack};

/// What every dataset of a rehearsal is called, or begins with.
pub const PREFIX: &str = "rehearsal";

/// Why the state can not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database holds somebody's data.
    #[error(
        "the database holds {0}, which no rehearsal made; DATABASE_URL must name one that may be cleared"
    )]
    NotOurs(String),
    /// The database could not be asked or cleared.
    #[error("the database can not be prepared")]
    Database(#[from] store::Error),
    /// The schema could not be applied.
    #[error("the schema can not be applied")]
    Migrator(#[from] lambda::Error),
    /// A function is missing.
    #[error("the stack is not complete")]
    Stack(#[from] stack::Error),
    /// Sandboxes could not be ended.
    #[error("idle sandboxes can not be ended here")]
    Sandboxes(#[from] io::Error),
    /// A queue could not be emptied.
    #[error("a queue can not be emptied")]
    Queue(#[source] Box<aws_sdk_sqs::Error>),
    /// The configuration could not be stored.
    #[error("the configuration can not be written to {0}")]
    Config(String, #[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What to do with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing may be left.
    Empty,
    /// The same rehearsal's rows stay, all others go.
    Kept,
}

/// What was done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The database was empty, or is now.
    Empty,
    /// It holds an earlier run of the same rehearsal.
    Earlier,
}

/// Prepares the database, the queues and the functions for `dataset`, whose configuration is `config`.
///
/// # Errors
///
/// [`Error`]; after [`Error::NotOurs`] nothing was changed.
pub async fn prepare(stack: &Stack, dataset: &str, config: &str, wanted: Wanted) -> Result<Found, Error> {
    let migrator = stack.function("migrator")?;
    lambda::invoke(&stack.aws, migrator, &json!({})).await?;
    let found = judge(&datasets(stack).await?, audit::balance(&stack.db).await?.committed, dataset, wanted)?;
    write_config(stack, config).await?;
    end_sandboxes(stack)?;
    if found == Verdict::Clear {
        clear(stack).await?;
        end_sandboxes(stack)?;
        lambda::invoke(&stack.aws, migrator, &json!({})).await?;
    }
    Ok(if found == Verdict::Keep { Found::Earlier } else { Found::Empty })
}

async fn datasets(stack: &Stack) -> Result<Vec<String>, Error> {
    Ok(audit::windows(&stack.db).await?.into_iter().map(|windows| windows.dataset).collect())
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Keep,
    Clear,
}

fn judge(present: &[String], jobs: i64, dataset: &str, wanted: Wanted) -> Result<Verdict, Error> {
    if let Some(other) = present.iter().find(|present| !present.starts_with(PREFIX)) {
        return Err(Error::NotOurs(format!("dataset {other}")));
    }
    if present.is_empty() && jobs > 0 {
        return Err(Error::NotOurs(format!("{jobs} jobs of no dataset")));
    }
    let same = !present.is_empty() && present.iter().all(|present| present == dataset);
    Ok(if same && wanted == Wanted::Kept { Verdict::Keep } else { Verdict::Clear })
}

/// Removes every row and every message, so that nothing of an earlier rehearsal rings in this one.
async fn clear(stack: &Stack) -> Result<(), Error> {
    for queue in stack.deployed.queues.values().chain(stack.deployed.dead_letter_queues.values()) {
        let purged = stack.sqs.purge_queue().queue_url(queue).send().await.map_err(aws_sdk_sqs::Error::from);
        match purged {
            Ok(_) | Err(aws_sdk_sqs::Error::PurgeQueueInProgress(_)) => {}
            Err(err) => return Err(Error::Queue(Box::new(err))),
        }
    }
    let cleared = sqlx::raw_sql("drop schema public cascade; create schema public").execute(&stack.db).await;
    cleared.map_err(store::Error::from)?;
    Ok(())
}

/// Ends every sandbox: the next ones read the configuration anew.
fn end_sandboxes(stack: &Stack) -> Result<(), Error> {
    let sandboxes = Sandboxes::of(stack.deployed.emulator_pid);
    let ours: Vec<&String> = stack.deployed.functions.values().collect();
    for sandbox in sandboxes.all()? {
        if ours.contains(&&sandbox.function) {
            sandboxes.kill(&sandbox)?;
        }
    }
    Ok(())
}

async fn write_config(stack: &Stack, config: &str) -> Result<(), Error> {
    let place = &stack.deployed.config;
    let written: Result<(), Box<dyn std::error::Error + Send + Sync>> = match s3_object(place) {
        Some((bucket, key)) => {
            let body = config.as_bytes().to_vec().into();
            stack
                .s3
                .put_object()
                .bucket(bucket)
                .key(key)
                .body(body)
                .send()
                .await
                .map(drop)
                .map_err(Into::into)
        }
        None => write_file(Path::new(place), config).map_err(Into::into),
    };
    written.map_err(|err| Error::Config(place.clone(), err))
}

fn write_file(path: &Path, text: &str) -> io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::write(path, text)
}

fn s3_object(place: &str) -> Option<(&str, &str)> {
    place.strip_prefix("s3://")?.split_once('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(present: &[&str], wanted: Wanted) -> Result<Verdict, Error> {
        let present: Vec<String> = present.iter().map(ToString::to_string).collect();
        judge(&present, 0, "rehearsal-mine", wanted)
    }

    #[test]
    fn database_with_a_dataset_of_somebody_else_is_refused() {
        for wanted in [Wanted::Empty, Wanted::Kept] {
            let refused = judged(&["rehearsal-mine", "us8"], wanted);
            assert!(matches!(refused, Err(Error::NotOurs(what)) if what == "dataset us8"));
        }
    }

    #[test]
    fn database_of_a_pipeline_without_windows_is_refused() {
        assert!(matches!(judge(&[], 3, "rehearsal", Wanted::Empty), Err(Error::NotOurs(_))));
    }

    #[test]
    fn only_the_same_rehearsal_keeps_its_state() {
        assert_eq!(judged(&["rehearsal-mine"], Wanted::Kept).unwrap(), Verdict::Keep);
        assert_eq!(judged(&["rehearsal-mine"], Wanted::Empty).unwrap(), Verdict::Clear);
        assert_eq!(judged(&["rehearsal-mine", "rehearsal"], Wanted::Kept).unwrap(), Verdict::Clear);
        assert_eq!(judged(&[], Wanted::Kept).unwrap(), Verdict::Clear);
    }

    #[test]
    fn configuration_may_lie_in_a_bucket() {
        assert_eq!(s3_object("s3://bucket/some/key.toml"), Some(("bucket", "some/key.toml")));
        assert_eq!(s3_object("/tmp/tailcar.toml"), None);
    }
}
