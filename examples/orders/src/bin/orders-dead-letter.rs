//! Judges the messages that nobody could handle.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), runtime::serve::Failed> {
    runtime::serve::dead_letter(&orders::JOB_TYPES).await
}
