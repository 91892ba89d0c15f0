//! One scenario's world: a database, three queues with their dead letters, a bucket, and settings.
//!
//! Worlds share the two servers and nothing else. Time passes in a world when it is told to: every
//! instant in its rows moves into the past by the same amount, and every visibility timeout ends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use aws_config::BehaviorVersion;
use serde_json::json;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, PgPool};
use uuid::Uuid;

use crate::Result;
use crate::components::Components;
use crate::mapping::Mapping;
use crate::queue::Queue;
use crate::sandbox::Sandbox;

/// What each function has for an invocation. Ample, so that a slow machine changes no result.
pub const FUNCTION_TIMEOUT: Duration = Duration::from_secs(10);
/// What the collector has: as deployed, since it shares its time out among its sources.
const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(55);
const LEASE_MARGIN: Duration = Duration::from_secs(2);
const VISIBILITY: Duration = Duration::from_secs(30);
const RECONCILER_DELAY: Duration = Duration::from_secs(30);
/// Above what any scenario uses up.
const RECEIVES_MAX: u32 = 100;
/// The destinations that the configuration knows.
pub const DESTINATIONS: [&str; 3] = ["news", "price", "explain"];

/// What `component` has for an invocation.
#[must_use]
pub fn timeout_of(component: &str) -> Duration {
    if component == "collector" { COLLECTOR_TIMEOUT } else { FUNCTION_TIMEOUT }
}

/// The servers and the built components; one for the whole run.
pub struct Stand {
    database_url: String,
    sqs: aws_sdk_sqs::Client,
    s3: aws_sdk_s3::Client,
    /// Where the components are.
    pub components: Components,
    folder: PathBuf,
}

impl Stand {
    /// Reads `DATABASE_URL` and the AWS variables, and builds the components.
    ///
    /// # Errors
    ///
    /// A variable is missing, or the build fails.
    pub async fn new() -> Result<Self> {
        let missing = "run it as `python3 -m tools.stack run -- …`: DATABASE_URL and AWS_ENDPOINT_URL must name test servers";
        let database_url = std::env::var("DATABASE_URL").map_err(|_| missing)?;
        std::env::var("AWS_ENDPOINT_URL").map_err(|_| missing)?;
        let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
        let s3 = aws_sdk_s3::config::Builder::from(&config).force_path_style(true).build();
        let components = Components::build()?;
        let folder = components.folder.join(format!("run-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self {
            database_url,
            sqs: aws_sdk_sqs::Client::new(&config),
            s3: aws_sdk_s3::Client::from_conf(s3),
            components,
            folder,
        })
    }

    /// A world with nothing in it but the schema.
    ///
    /// # Errors
    ///
    /// A server refuses.
    pub async fn world(&self, name: &str) -> Result<World> {
        self.world_with(name, RECEIVES_MAX).await
    }

    /// The same, with queues that give a message up after `receives_max` receives.
    ///
    /// # Errors
    ///
    /// A server refuses.
    pub async fn world_with(&self, name: &str, receives_max: u32) -> Result<World> {
        let id = format!("{name}-{}", &Uuid::new_v4().simple().to_string()[..8]);
        let folder = self.folder.join(&id);
        std::fs::create_dir_all(&folder)?;
        let options = self.create_database(&id.replace('-', "_")).await?;
        let database_url = options.to_url_lossy().to_string();
        let db = PgPoolOptions::new().max_connections(4).connect_with(options.clone()).await?;
        store::migrate::migrate(&db).await?;
        store::roles::create_logins(&db).await?;
        let mut queues = BTreeMap::new();
        for destination in DESTINATIONS {
            let visibility = u32::try_from(VISIBILITY.as_secs())?;
            let pair =
                Queue::create(&self.sqs, &format!("{id}-{destination}"), visibility, receives_max).await?;
            queues.insert(destination, pair);
        }
        self.s3.create_bucket().bucket(&id).send().await?;
        Ok(World {
            database: options.get_database().unwrap_or_default().to_owned(),
            admin_url: self.database_url.clone(),
            server: format!("{}:{}", options.get_host(), options.get_port()),
            components: self.components.clone(),
            s3: self.s3.clone(),
            id,
            folder,
            database_url,
            db,
            queues,
        })
    }

    /// S3, as it stands in for AWS's.
    #[must_use]
    pub fn s3(&self) -> &aws_sdk_s3::Client {
        &self.s3
    }

    async fn create_database(&self, name: &str) -> Result<PgConnectOptions> {
        let options = PgConnectOptions::from_str(&self.database_url)?;
        let mut admin = options.connect().await?;
        // The name is made of letters, digits and `_` just above.
        sqlx::raw_sql(AssertSqlSafe(format!(r#"create database "{name}""#))).execute(&mut admin).await?;
        Ok(options.database(name))
    }
}

/// One scenario's world.
pub struct World {
    admin_url: String,
    database: String,
    database_url: String,
    id: String,
    components: Components,
    s3: aws_sdk_s3::Client,
    queues: BTreeMap<&'static str, (Queue, Queue)>,
    /// Where PostgreSQL listens, as `host:port`.
    pub server: String,
    /// Its files: the logs of its processes, and input that a scenario writes.
    pub folder: PathBuf,
    /// The harness's own connections.
    pub db: PgPool,
}

impl World {
    /// The queue of `destination`.
    ///
    /// # Panics
    ///
    /// `destination` is not one of [`DESTINATIONS`].
    #[must_use]
    pub fn queue(&self, destination: &str) -> &Queue {
        &self.queues[destination].0
    }

    /// The dead-letter queue of `destination`.
    ///
    /// # Panics
    ///
    /// `destination` is not one of [`DESTINATIONS`].
    #[must_use]
    pub fn dead_letters(&self, destination: &str) -> &Queue {
        &self.queues[destination].1
    }

    /// The bucket of this world.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.id
    }

    /// Where this world's configuration is, if it has one of its own.
    #[must_use]
    pub fn configuration(&self) -> PathBuf {
        self.folder.join("tailcar.toml")
    }

    /// A mapping from the queue of `destination`.
    #[must_use]
    pub fn mapping(&self, destination: &str) -> Mapping {
        Mapping::new(self.queue(destination).clone(), FUNCTION_TIMEOUT)
    }

    /// What every function of this world is started with; `destination` is the one of a consumer.
    #[must_use]
    pub fn environment(&self, destination: &str) -> Environment {
        self.environment_of(destination, false)
    }

    /// The same for `component`: the function behind the dead-letter queues has those in `QUEUE_URLS`.
    #[must_use]
    pub fn environment_for(&self, component: &str, destination: &str) -> Environment {
        self.environment_of(destination, component == "dead-letter")
    }

    fn environment_of(&self, destination: &str, dead_letters: bool) -> Environment {
        let urls = |dead: bool| {
            let url = |pair: &(Queue, Queue)| if dead { pair.1.url.clone() } else { pair.0.url.clone() };
            json!(self.queues.iter().map(|(name, pair)| (*name, url(pair))).collect::<BTreeMap<_, _>>())
                .to_string()
        };
        let own = [
            ("DATABASE_URL", self.database_url.clone()),
            ("DATABASE_CONNECTIONS_MAX", "3".to_owned()),
            ("ARTIFACT_BUCKET", self.id.clone()),
            ("QUEUE_URL", self.queue(destination).url.clone()),
            ("QUEUE_URLS", urls(dead_letters)),
            ("RELAY_LINGER_SECONDS", "0".to_owned()),
            ("FUNCTION_TIMEOUT_SECONDS", FUNCTION_TIMEOUT.as_secs().to_string()),
            ("LEASE_MARGIN_SECONDS", LEASE_MARGIN.as_secs().to_string()),
            ("VISIBILITY_TIMEOUT_SECONDS", VISIBILITY.as_secs().to_string()),
            ("RECONCILER_DELAY_SECONDS", RECONCILER_DELAY.as_secs().to_string()),
        ];
        let configuration = self.configuration();
        let own_file = configuration
            .is_file()
            .then(|| ("TAILCAR_CONFIG".to_owned(), configuration.display().to_string()));
        let aws = std::env::vars().filter(|(name, _)| name.starts_with("AWS_"));
        Environment(aws.chain(own.map(|(name, value)| (name.to_owned(), value))).chain(own_file).collect())
    }

    /// Starts the function `component`; the subject is one, in its role as a consumer.
    ///
    /// # Errors
    ///
    /// It is not built, or can not be started.
    pub async fn start(&self, component: &str, environment: &Environment) -> Result<Sandbox> {
        let executable = self.components.path(component);
        let arguments: &[&str] = if component == "subject" { &["consumer"] } else { &[] };
        let timeout = timeout_of(component).as_secs().to_string();
        let environment = environment.clone().with("FUNCTION_TIMEOUT_SECONDS", timeout);
        // The migrator owns the tables; nobody else does.
        let environment =
            if component == "migrator" { environment } else { environment.as_user(&login_of(component)) };
        Sandbox::start(&executable, arguments, &environment.0, &self.log(component)).await
    }

    /// Runs the subject in a role that is no function.
    ///
    /// # Errors
    ///
    /// It can not be started.
    pub async fn run_subject(
        &self,
        arguments: &[&str],
        environment: &Environment,
    ) -> Result<std::process::ExitStatus> {
        crate::sandbox::run(&self.components.path("subject"), arguments, &environment.0, &self.log("subject"))
            .await
    }

    fn log(&self, component: &str) -> PathBuf {
        self.folder.join(format!("{component}.log"))
    }

    /// Everything that was ever noted in this world happened `by` earlier. Sessions that have been idle
    /// in a transaction are ended, as the server's own limit ends them after 30 s.
    ///
    /// # Errors
    ///
    /// The database refuses.
    pub async fn time_passes(&self, by: Duration) -> Result<()> {
        sqlx::query(
            "select pg_terminate_backend(pid) from pg_stat_activity \
             where datname = current_database() and state like 'idle in transaction%' and pid <> pg_backend_pid()",
        )
        .execute(&self.db)
        .await?;
        sqlx::query(
            "with passed as (select make_interval(secs => $1) as time), \
             jobs as (update job set next_attempt_at = next_attempt_at - time, lease_until = lease_until - time, \
                             last_requeued_at = last_requeued_at - time \
                        from passed where finished_at is null), \
             events as (update outbox_event set next_attempt_at = next_attempt_at - time, published_at = published_at - time \
                          from passed where status <> 'DEAD') \
             update lane set lease_until = lease_until - time, retry_at = retry_at - time from passed",
        )
        .bind(by.as_secs_f64())
        .execute(&self.db)
        .await?;
        Ok(())
    }

    /// One number out of the database.
    ///
    /// # Errors
    ///
    /// The database refuses.
    pub async fn count(&self, query: &'static str) -> Result<i64> {
        Ok(sqlx::query_scalar(query).fetch_one(&self.db).await?)
    }

    /// Sessions from now on hear of a COMMIT when it is in the server's log, as on any server that is
    /// crashed on purpose. The test servers answer earlier: they are only ever thrown away.
    ///
    /// # Errors
    ///
    /// The database refuses.
    pub async fn keep_commits(&self) -> Result<()> {
        let command = format!(r#"alter database "{}" set synchronous_commit = on"#, self.database);
        sqlx::raw_sql(AssertSqlSafe(command)).execute(&self.db).await?;
        Ok(())
    }

    /// The keys that a row refers to and that are not in the bucket.
    ///
    /// # Errors
    ///
    /// A server refuses.
    pub async fn absent_objects(&self) -> Result<Vec<String>> {
        let referred = "select key from artifact where state = 'REFERENCED' order by key";
        let mut keys: Vec<String> = sqlx::query_scalar(referred).fetch_all(&self.db).await?;
        let mut pages = self.s3.list_objects_v2().bucket(&self.id).into_paginator().send();
        let mut present = BTreeSet::new();
        while let Some(page) = pages.try_next().await? {
            present.extend(page.contents.unwrap_or_default().into_iter().filter_map(|object| object.key));
        }
        keys.retain(|key| !present.contains(key));
        Ok(keys)
    }

    /// Removes the database. The logs stay.
    ///
    /// # Errors
    ///
    /// The database refuses.
    pub async fn end(self) -> Result<()> {
        self.db.close().await;
        let mut admin = PgConnectOptions::from_str(&self.admin_url)?.connect().await?;
        let drop = format!(r#"drop database "{}" with (force)"#, self.database);
        sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut admin).await?;
        Ok(())
    }
}

/// The user that `component` logs in as: it can do what its role may do, and nothing else.
fn login_of(component: &str) -> String {
    let role = match component {
        "subject" => "consumer".to_owned(),
        consumer if consumer.ends_with("-consumer") => "consumer".to_owned(),
        other => other.replace('-', "_"),
    };
    store::roles::login(&format!("tailcar_{role}"))
}

/// The environment of a child process.
#[derive(Clone)]
pub struct Environment(Vec<(String, String)>);

impl Environment {
    /// The same with one variable more, or another value of it.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.to_owned(), value.into()));
        self
    }

    /// The same with a fault, as `point:kill:1`.
    #[must_use]
    pub fn with_fault(self, fault: &str) -> Self {
        self.with("TAILCAR_FAULT", fault)
    }

    /// The same, noting each passage of a point in `file`.
    #[must_use]
    pub fn noting(self, file: &Path) -> Self {
        self.with("TAILCAR_FAULT_LOG", file.display().to_string())
    }

    /// The same, with another login to the database.
    #[must_use]
    pub fn as_user(self, login: &str) -> Self {
        self.database(|options| options.username(login))
    }

    /// The same, with the database behind `address`.
    #[must_use]
    pub fn through(self, address: std::net::SocketAddr) -> Self {
        self.database(|options| options.host(&address.ip().to_string()).port(address.port()))
    }

    fn database(self, change: impl FnOnce(PgConnectOptions) -> PgConnectOptions) -> Self {
        let url = self.0.iter().find(|(name, _)| name == "DATABASE_URL").map(|(_, url)| url.clone());
        let options = url.and_then(|url| PgConnectOptions::from_str(&url).ok());
        let Some(options) = options.map(change) else { return self };
        self.with("DATABASE_URL", options.to_url_lossy().to_string())
    }
}
