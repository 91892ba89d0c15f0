//! Brings both schemas up to date: that of the protocol, then the pipeline's own.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), runtime::serve::Failed> {
    runtime::serve::migrator(&orders::MIGRATIONS).await
}
