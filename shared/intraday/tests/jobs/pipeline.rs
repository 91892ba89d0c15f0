//! A collector and three consumers without a network.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::Identity;
use domain::identity::sha256_hex;
use intraday::config::{Config, location::BUNDLED};
use intraday::explain::ExplainHandler;
use intraday::extraction::rules::RulesExtractor;
use intraday::feeds::document::{ItemDocument, VERSION};
use intraday::news::{Documents, NewsHandler};
use intraday::price::PriceHandler;
use runtime::artifacts::GetError;
use runtime::consumer::{Engine, Handler, Limits};
use runtime::time_left::TimeLeft;
use serde_json::{Value, json};
use sqlx::{PgPool, Row};
use store::artifact::{self, NewArtifact};
use store::enqueue::{NewJob, enqueue};
use store::window::{self, NewWindow, Opened, WindowRef};
use testkit::inbox::{self, Inbox};

pub const DATASET: &str = "us8";

/// A minute after 09:30 in New York on 2018-04-04.
pub fn at(minute: i64) -> DateTime<Utc> {
    testkit::windows::first_minute() + TimeDelta::minutes(minute)
}

/// Documents in memory.
#[derive(Clone, Default)]
pub struct Shelf {
    documents: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    pub unavailable: bool,
}

impl Documents for Shelf {
    async fn get(&self, key: &str) -> Result<Vec<u8>, GetError> {
        if self.unavailable {
            return Err(GetError::Unavailable("the bucket can not be reached".into()));
        }
        self.documents.lock().unwrap().get(key).cloned().ok_or(GetError::Missing)
    }
}

pub struct Pipeline {
    pub db: PgPool,
    pub config: Arc<Config>,
    pub shelf: Shelf,
}

impl Pipeline {
    pub fn new(db: PgPool) -> Self {
        Self { db, config: Arc::new(Config::load(BUNDLED).unwrap()), shelf: Shelf::default() }
    }

    /// Collects a minute for the first time or corrects it, with its job.
    pub async fn collect(&self, minute: i64, closes: &[(&str, &str)]) {
        let window = self.store(minute, closes, false).await;
        let mut tx = self.db.begin().await.unwrap();
        enqueue(&mut tx, &[price_job(&window)]).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Stores a past minute, without a job.
    pub async fn backfill(&self, minute: i64, closes: &[(&str, &str)]) {
        self.store(minute, closes, true).await;
    }

    async fn store(&self, minute: i64, closes: &[(&str, &str)], backfilled: bool) -> WindowRef {
        let seen = window::read_many(&self.db, DATASET, &[at(minute)]).await.unwrap();
        let generation = seen.get(&at(minute)).map_or(1, |seen| seen.generation + 1);
        let key = format!("window/{minute}/{generation}");
        let digest = sha256_hex(key.as_bytes());
        let mut tx = self.db.begin().await.unwrap();
        let artifact = NewArtifact { key: &key, sha256: &digest, size_bytes: 1, owner: "window" };
        artifact::refer(&mut *tx, &[artifact]).await.unwrap();
        let new = NewWindow {
            dataset: DATASET,
            start: at(minute),
            session_date: at(minute).date_naive(),
            content_digest: &digest,
            bar_count: i32::try_from(closes.len()).unwrap(),
            artifact_key: (!closes.is_empty()).then_some(key.as_str()),
            backfilled,
        };
        if generation == 1 {
            assert_eq!(window::open(&mut *tx, &new).await.unwrap(), Opened::Opened);
        } else {
            window::correct(&mut *tx, &new, generation - 1).await.unwrap();
        }
        sqlx::query("delete from price_bar where window_start = $1")
            .bind(at(minute))
            .execute(&mut *tx)
            .await
            .unwrap();
        for (symbol, close) in closes {
            sqlx::query(
                "insert into price_bar (dataset, symbol, window_start, open, high, low, close, volume)
                 values ($1, $2, $3, $4::numeric, $4::numeric, $4::numeric, $4::numeric, 1)",
            )
            .bind(DATASET)
            .bind(symbol)
            .bind(at(minute))
            .bind(close)
            .execute(&mut *tx)
            .await
            .unwrap();
        }
        tx.commit().await.unwrap();
        WindowRef { dataset: DATASET.to_owned(), start: at(minute), generation }
    }

    /// Collects one text of one item, with its document and its job.
    pub async fn publish(&self, item: &str, title: &str, published_at: DateTime<Utc>) {
        let (item_id, revision) = (sha256_hex(item.as_bytes()), sha256_hex(title.as_bytes()));
        let key = format!("news/{item_id}/{revision}");
        let document = ItemDocument {
            version: VERSION,
            item_id: item_id.clone(),
            revision: revision.clone(),
            dataset: DATASET.to_owned(),
            feed: "wire".to_owned(),
            title: title.to_owned(),
            text: String::new(),
            link: Some(format!("https://wire.example/{item}")),
            published_at,
        };
        self.shelf.documents.lock().unwrap().insert(key.clone(), serde_json::to_vec(&document).unwrap());

        let mut tx = self.db.begin().await.unwrap();
        let artifact = NewArtifact { key: &key, sha256: &revision, size_bytes: 1, owner: "news" };
        artifact::refer(&mut *tx, &[artifact]).await.unwrap();
        sqlx::query(
            "insert into news_revision (item_id, revision, dataset, feed, title, link, published_at, artifact_key)
             values ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(&item_id)
        .bind(&revision)
        .bind(DATASET)
        .bind(&document.feed)
        .bind(title)
        .bind(&document.link)
        .bind(published_at)
        .bind(&key)
        .execute(&mut *tx)
        .await
        .unwrap();
        enqueue(&mut tx, &[news_job(&item_id, &revision, &key)]).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub fn lose_documents(&self) {
        self.shelf.documents.lock().unwrap().clear();
    }

    /// The bodies of every message there ever was for a destination, oldest first.
    pub async fn messages(&self, destination: &str) -> Vec<String> {
        sqlx::query_scalar("select body from outbox_event where destination = $1 order by sequence")
            .bind(destination)
            .fetch_all(&self.db)
            .await
            .unwrap()
    }

    /// Delivers messages one by one, in this order.
    pub async fn deliver(&self, destination: &str, bodies: &[String]) {
        match destination {
            "price" => self.run(PriceHandler::new(self.config.clone()), bodies).await,
            "explain" => self.run(ExplainHandler::new(self.config.clone()), bodies).await,
            _ => {
                let extractor = RulesExtractor::new(&self.config);
                let handler = NewsHandler::new(self.config.clone(), self.shelf.clone(), extractor);
                self.run(handler, bodies).await;
            }
        }
    }

    /// Delivers every message of a destination.
    pub async fn deliver_all(&self, destination: &str) {
        self.deliver(destination, &self.messages(destination).await).await;
    }

    async fn run<H: Handler>(&self, handler: H, bodies: &[String]) {
        let engine = Engine::new(self.db.clone(), Inbox::default(), handler, Limits::default());
        for body in bodies {
            let event = inbox::event(&[("message", body.clone())]);
            engine.consume(event, TimeLeft::lasting(Duration::from_mins(1))).await.unwrap();
        }
    }

    /// Lets every job that waits for its next attempt be due.
    pub async fn pass_time(&self) {
        sqlx::query("update job set next_attempt_at = now() where status = 'RETRY'")
            .execute(&self.db)
            .await
            .unwrap();
    }

    /// How many jobs of a destination are in each state, the reason with those that are DEAD.
    pub async fn jobs(&self, destination: &str) -> Vec<(String, i64)> {
        let rows = sqlx::query(
            "select coalesce(dead_reason, status) as state, count(*) as jobs
               from job where destination = $1 group by 1 order by 1",
        )
        .bind(destination)
        .fetch_all(&self.db)
        .await
        .unwrap();
        rows.into_iter().map(|row| (row.get("state"), row.get("jobs"))).collect()
    }

    /// The rows of a statement without parameters, each as JSON.
    pub async fn rows(&self, statement: &'static str) -> Vec<Value> {
        sqlx::query_scalar(statement).fetch_all(&self.db).await.unwrap()
    }
}

fn price_job(window: &WindowRef) -> NewJob {
    let start = window.start.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let identity = Identity::new("price")
        .text("dataset", DATASET)
        .text("window_start", &start)
        .integer("window_generation", window.generation.into());
    let payload = json!({"dataset": DATASET, "window_start": start});
    NewJob { window: Some(window.clone()), ..job("price", identity, payload) }
}

fn news_job(item_id: &str, revision: &str, key: &str) -> NewJob {
    let identity = Identity::new("news").text("item_id", item_id).text("revision", revision);
    let payload = json!({"item_id": item_id, "revision": revision});
    NewJob { artifact_key: Some(key.to_owned()), ..job("news", identity, payload) }
}

fn job(destination: &str, identity: Identity, payload: Value) -> NewJob {
    NewJob {
        identity,
        job_type: destination.to_owned(),
        destination: destination.to_owned(),
        payload,
        artifact_key: None,
        window: None,
        max_attempts: 8,
        max_age: None,
        ordering_key: None,
        trace_header: None,
    }
}
