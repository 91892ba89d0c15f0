//! Tells shops that receipts are out.

use orders::announce::AnnouncementHandler;
use orders::outside::Recorder;
use runtime::serve::{self, Failed};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    serve::consumer(async |start| {
        let own = start.connections(1).await?;
        Ok(AnnouncementHandler::new(own.clone(), Recorder::new("webhook", own)))
    })
    .await
}
