//! A collector with its own folders, a bucket in memory that can be told to misbehave, and the counts
//! that the properties are about.

use std::error::Error;
use std::sync::Mutex;

use futures::future::BoxFuture;
use runtime::artifacts::Written;
use serde_json::json;
use uuid::Uuid;

use super::super::*;
use crate::fixture::Folder;

/// Something that happens while an artifact is being written: others do not wait for us.
type Meanwhile = BoxFuture<'static, ()>;

/// A bucket in memory.
#[derive(Default)]
pub(super) struct Bucket {
    /// Owner and key of each object.
    pub objects: Mutex<Vec<(String, String)>>,
    /// What happens during the next PUT.
    pub meanwhile: Mutex<Option<Meanwhile>>,
    /// The key that the next PUT gets, instead of a new one.
    pub next_key: Mutex<Option<String>>,
    /// Whether PUTs fail.
    pub broken: Mutex<bool>,
}

impl ArtifactWriter for Bucket {
    async fn put(
        &self,
        owner: &str,
        name: &str,
        _written_at: DateTime<Utc>,
        body: Vec<u8>,
    ) -> Result<Written, Box<dyn Error + Send + Sync>> {
        if *self.broken.lock().unwrap() {
            return Err("the bucket is broken".into());
        }
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile.await;
        }
        let new_key = || format!("artifacts/{owner}/{name}-{}.json", Uuid::new_v4());
        let key = self.next_key.lock().unwrap().take().unwrap_or_else(new_key);
        self.objects.lock().unwrap().push((owner.to_owned(), key.clone()));
        let sha256 = domain::identity::sha256_hex(&body);
        Ok(Written { key, sha256, size_bytes: i64::try_from(body.len()).unwrap() })
    }
}

/// What is there, in all.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub windows: i64,
    pub bars: i64,
    pub price_jobs: i64,
    pub news_jobs: i64,
    pub events: i64,
    pub revisions: i64,
    pub artifacts: i64,
    pub objects: usize,
}

pub(super) struct Bench {
    pub collector: Collector<Bucket>,
    pub bars: Folder,
    pub news: Folder,
}

impl Bench {
    /// A collector of us8 whose folders hold nothing yet.
    pub(super) fn new(db: &PgPool) -> Self {
        Self::over(db, Folder::with(&[]), Folder::with(&[]), "")
    }

    /// `more` are further sources, as the configuration file has them.
    pub(super) fn over(db: &PgPool, bars: Folder, news: Folder, more: &str) -> Self {
        let text = crate::config::location::BUNDLED
            .replace("input/bars", bars.path().to_str().unwrap())
            .replace("input/news", news.path().to_str().unwrap());
        let s3 = aws_sdk_s3::Config::builder().behavior_version_latest().build();
        let collector = Collector {
            config: Config::load(&format!("{text}\n{more}")).unwrap(),
            db: db.clone(),
            artifacts: Bucket::default(),
            fetcher: Fetcher::new(aws_sdk_s3::Client::from_conf(s3)).unwrap(),
        };
        Self { collector, bars, news }
    }

    pub(super) async fn ask(&self, request: serde_json::Value) -> Result<DatasetReport, super::super::Error> {
        let request = Request::parse(request).unwrap();
        let time = TimeLeft::lasting(Duration::from_mins(1));
        let mut report = self.collector.run(&request, time, None).await?;
        Ok(report.datasets.remove(0))
    }

    /// As if the schedule fired at this time of 2018-04-04, universal time.
    pub(super) async fn at(&self, time: &str) -> DatasetReport {
        self.ask(json!({ "dataset": "us8", "at": instant(time) })).await.unwrap()
    }

    /// The windows from the first to the last of two times of 2018-04-04.
    pub(super) async fn range(&self, from: &str, to: &str, backfill: bool) -> DatasetReport {
        let request =
            json!({ "dataset": "us8", "from": instant(from), "to": instant(to), "backfill": backfill });
        self.ask(request).await.unwrap()
    }

    pub(super) async fn counts(&self) -> Counts {
        let row = sqlx::query!(
            r#"
            select (select count(*) from collection_window) as "windows!",
                   (select count(*) from price_bar) as "bars!",
                   (select count(*) from job where job_type = 'price') as "price_jobs!",
                   (select count(*) from job where job_type = 'news') as "news_jobs!",
                   (select count(*) from outbox_event) as "events!",
                   (select count(*) from news_revision) as "revisions!",
                   (select count(*) from artifact where state = 'REFERENCED') as "artifacts!"
            "#
        )
        .fetch_one(&self.collector.db)
        .await
        .unwrap();
        Counts {
            windows: row.windows,
            bars: row.bars,
            price_jobs: row.price_jobs,
            news_jobs: row.news_jobs,
            events: row.events,
            revisions: row.revisions,
            artifacts: row.artifacts,
            objects: self.collector.artifacts.objects.lock().unwrap().len(),
        }
    }

    pub(super) async fn generation(&self, time: &str) -> i32 {
        let start = instant(time);
        let seen = store::window::read_many(&self.collector.db, "us8", &[start]).await.unwrap();
        seen[&start].generation
    }
}

/// A time of 2018-04-04, universal time; the session of us8 is 13:30 to 20:00.
pub(super) fn instant(time: &str) -> DateTime<Utc> {
    format!("2018-04-04T{time}Z").parse().unwrap()
}

/// A bars file with a row for each symbol and time of day (universal time), all of one price.
pub(super) fn csv(symbols: &[&str], times: &[&str], price: &str) -> String {
    let row = |time: &str, symbol: &str| {
        format!("2018-04-04T{time}:00Z,{symbol},{price},{price},{price},{price},1\n")
    };
    let rows = times.iter().flat_map(|time| symbols.iter().map(|symbol| row(time, symbol)));
    "timestamp,symbol,open,high,low,close,volume\n".to_owned() + &rows.collect::<String>()
}

pub(super) fn messages(report: &DatasetReport) -> Vec<String> {
    report.faults.iter().map(ToString::to_string).collect()
}
