//! Receipts: the e-mail goes out in `prepare`, the row and the follow-up job are written in `apply`.

use domain::JobType;
use runtime::consumer::{Failure, Handler, Job};
use sqlx::{PgConnection, PgPool};
use store::enqueue::{NewJob, enqueue_one};

use crate::RECEIPT;
use crate::order::{self, Order, OrderRef};
use crate::outside::Outside;

/// Sends receipts.
#[derive(Clone, Debug)]
pub struct ReceiptHandler<O> {
    /// Connections of its own: `prepare` takes none from the engine.
    db: PgPool,
    mail: O,
}

impl<O: Outside> ReceiptHandler<O> {
    /// Reads orders from `db` and hands receipts to `mail`.
    #[must_use]
    pub fn new(db: PgPool, mail: O) -> Self {
        Self { db, mail }
    }
}

impl<O: Outside> Handler for ReceiptHandler<O> {
    type Payload = OrderRef;
    type Prepared = Order;

    fn job_type(&self) -> JobType {
        RECEIPT
    }

    async fn prepare(&self, job: &Job<OrderRef>) -> Result<Order, Failure> {
        let found = order::find(&self.db, &job.payload.order_id).await?;
        let order = found.ok_or_else(|| Failure::permanent("UNKNOWN_ORDER", "there is no such order"))?;
        self.mail.hand_over(job.id(), &order.email, &text(&order)).await.map_err(Failure::transient)?;
        Ok(order)
    }

    async fn apply(&self, tx: &mut PgConnection, job: &Job<OrderRef>, order: Order) -> Result<(), Failure> {
        sqlx::query(
            "insert into receipt (order_id, job_id) values ($1, $2) on conflict (order_id) do nothing",
        )
        .bind(&order.order_id)
        .bind(job.id().as_str())
        .execute(&mut *tx)
        .await?;
        if order.callback_url.is_some() {
            let trace_header = job.trace_header().map(str::to_owned);
            enqueue_one(tx, &NewJob { trace_header, ..order::announcement_job(&order.order_id) }).await?;
        }
        Ok(())
    }
}

fn text(order: &Order) -> String {
    let (euros, cents) = (order.total_cents / 100, order.total_cents % 100);
    format!("Thank you for order {}: {euros}.{cents:02} EUR.", order.order_id)
}
