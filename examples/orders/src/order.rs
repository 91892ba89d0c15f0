//! Orders: placed in one transaction with the job of their receipt.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{PgConnection, PgPool};
use store::enqueue::{NewJob, enqueue_one};

use crate::{ANNOUNCEMENT, RECEIPT};

/// An order, as it is placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The shop's own number of it.
    pub order_id: String,
    /// Who bought.
    pub email: String,
    /// What it cost, in cents.
    pub total_cents: i64,
    /// Where the shop wants to hear that the receipt is out.
    pub callback_url: Option<String>,
}

/// The payload of both jobs: a reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderRef {
    /// The order.
    pub order_id: String,
}

/// What came of placing an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It is there now, and its receipt will be sent.
    New,
    /// It was there.
    Known,
}

/// Places `order` in the caller's transaction.
///
/// The job is enqueued only with the row: placing an order again, even years later, sends nothing.
///
/// # Errors
///
/// What the database said; roll back.
pub async fn place(tx: &mut PgConnection, order: &Order) -> Result<Placed, store::Error> {
    let inserted = sqlx::query(
        "insert into purchase (order_id, email, total_cents, callback_url) values ($1, $2, $3, $4)
             on conflict (order_id) do nothing",
    )
    .bind(&order.order_id)
    .bind(&order.email)
    .bind(order.total_cents)
    .bind(&order.callback_url)
    .execute(&mut *tx)
    .await?;
    if inserted.rows_affected() == 0 {
        return Ok(Placed::Known);
    }
    enqueue_one(tx, &receipt_job(&order.order_id)).await?;
    Ok(Placed::New)
}

/// The order of that number.
///
/// # Errors
///
/// What the database said.
pub async fn find(db: &PgPool, order_id: &str) -> Result<Option<Order>, sqlx::Error> {
    let row: Option<(String, i64, Option<String>)> =
        sqlx::query_as("select email, total_cents, callback_url from purchase where order_id = $1")
            .bind(order_id)
            .fetch_optional(db)
            .await?;
    Ok(row.map(|(email, total_cents, callback_url)| Order {
        order_id: order_id.to_owned(),
        email,
        total_cents,
        callback_url,
    }))
}

/// The job that sends the receipt of an order.
#[must_use]
pub fn receipt_job(order_id: &str) -> NewJob {
    NewJob::new(&RECEIPT, RECEIPT.identity().text("order_id", order_id), json!({ "order_id": order_id }))
}

/// The job that announces it.
#[must_use]
pub fn announcement_job(order_id: &str) -> NewJob {
    NewJob::new(
        &ANNOUNCEMENT,
        ANNOUNCEMENT.identity().text("order_id", order_id),
        json!({ "order_id": order_id }),
    )
}
