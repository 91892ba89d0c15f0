//! Sends what the transactions of the pipeline have committed.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), runtime::serve::Failed> {
    runtime::serve::relay(&orders::JOB_TYPES).await
}
