//! Announcements: the shop is told that a receipt is out.

use domain::JobType;
use runtime::consumer::{Failure, Handler, Job};
use serde_json::json;
use sqlx::{PgConnection, PgPool};

use crate::ANNOUNCEMENT;
use crate::order::{self, OrderRef};
use crate::outside::Outside;

/// Tells shops.
#[derive(Clone, Debug)]
pub struct AnnouncementHandler<O> {
    /// Connections of its own: `prepare` takes none from the engine.
    db: PgPool,
    shop: O,
}

impl<O: Outside> AnnouncementHandler<O> {
    /// Reads orders from `db` and calls `shop`.
    #[must_use]
    pub fn new(db: PgPool, shop: O) -> Self {
        Self { db, shop }
    }
}

impl<O: Outside> Handler for AnnouncementHandler<O> {
    type Payload = OrderRef;
    type Prepared = ();

    fn job_type(&self) -> JobType {
        ANNOUNCEMENT
    }

    async fn prepare(&self, job: &Job<OrderRef>) -> Result<(), Failure> {
        let found = order::find(&self.db, &job.payload.order_id).await?;
        let url = found.and_then(|order| order.callback_url);
        let url = url.ok_or_else(|| Failure::permanent("NO_CALLBACK", "the order has no callback"))?;
        let body = json!({ "order_id": job.payload.order_id, "receipt": "sent" }).to_string();
        self.shop.hand_over(job.id(), &url, &body).await.map_err(Failure::transient)
    }

    async fn apply(&self, tx: &mut PgConnection, job: &Job<OrderRef>, (): ()) -> Result<(), Failure> {
        sqlx::query(
            "insert into announcement (order_id, job_id) values ($1, $2) on conflict (order_id) do nothing",
        )
        .bind(&job.payload.order_id)
        .bind(job.id().as_str())
        .execute(tx)
        .await?;
        Ok(())
    }
}
