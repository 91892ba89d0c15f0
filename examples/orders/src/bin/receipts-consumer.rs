//! Sends receipts.

use orders::outside::Recorder;
use orders::receipt::ReceiptHandler;
use runtime::serve::{self, Failed};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    serve::consumer(async |start| {
        let own = start.connections(1).await?;
        Ok(ReceiptHandler::new(own.clone(), Recorder::new("mail", own)))
    })
    .await
}
