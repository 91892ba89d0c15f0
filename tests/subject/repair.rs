//! The product's repairing code in roles of the subject, for as long as it has no function of its own.

use lambda_runtime::{LambdaEvent, service_fn};
use runtime::dead_letter::{DeadLetter, Lanes};
use runtime::{operator, reconciler};
use serde_json::Value;
use sqlx::PgPool;
use store::reconcile::Pace;

use crate::Error;

/// Rings for lost jobs, once an invocation.
pub async fn reconcile(db: &PgPool) -> Result<(), Error> {
    let handle = |_: LambdaEvent<Value>| async {
        Ok::<_, Error>(serde_json::to_value(reconciler::run(db, &Pace::default()).await?)?)
    };
    lambda_runtime::run(service_fn(handle)).await
}

/// Answers an operator.
pub async fn operate(db: &PgPool) -> Result<(), Error> {
    let handle = |event: LambdaEvent<Value>| async move {
        Ok::<_, Error>(operator::answer(db, &event.payload).await?)
    };
    lambda_runtime::run(service_fn(handle)).await
}

/// Decides about dead letters.
pub async fn bury(db: PgPool, sqs: aws_sdk_sqs::Client) -> Result<(), Error> {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let lanes = Lanes::parse(&variable("DEAD_LETTER_QUEUE_URLS"), &variable("DEAD_LETTER_POLICIES"))?;
    let dead_letter = &DeadLetter::new(db, lanes, sqs);
    let handle =
        |event: LambdaEvent<Value>| async move { Ok::<_, Error>(dead_letter.handle(&event.payload).await?) };
    lambda_runtime::run(service_fn(handle)).await
}
