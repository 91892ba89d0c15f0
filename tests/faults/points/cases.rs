//! How each component is brought to pass its points.

use std::path::PathBuf;

use serde_json::{Value, json};
use system_tests::Result;
use system_tests::crew::{Consumers, Crew};
use system_tests::market::Market;
use system_tests::sandbox::{Invoked, is_137};
use system_tests::subject;
use system_tests::world::{Environment, FUNCTION_TIMEOUT, Stand, World};

/// A component in a situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Producer,
    Relay,
    RelayInTrouble,
    RelayWithBadEvents,
    Consumer,
    ConsumerOfSuspects,
    Collector,
    CollectorCorrecting,
    News,
    NewsRevised,
    Price,
    PriceCorrected,
    Explain,
    DeadLetter,
    Reconciler,
    Redrive,
    Dismiss,
}

impl Case {
    pub const ALL: [Self; 17] = [
        Self::Producer,
        Self::Relay,
        Self::RelayInTrouble,
        Self::RelayWithBadEvents,
        Self::Consumer,
        Self::ConsumerOfSuspects,
        Self::Collector,
        Self::CollectorCorrecting,
        Self::News,
        Self::NewsRevised,
        Self::Price,
        Self::PriceCorrected,
        Self::Explain,
        Self::DeadLetter,
        Self::Reconciler,
        Self::Redrive,
        Self::Dismiss,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Producer => "points: producer",
            Self::Relay => "points: relay",
            Self::RelayInTrouble => "points: relay, queue missing",
            Self::RelayWithBadEvents => "points: relay, events refused for ever",
            Self::Consumer => "points: consumer",
            Self::ConsumerOfSuspects => "points: consumer, jobs tried before",
            Self::Collector => "points: collector",
            Self::CollectorCorrecting => "points: collector, correcting",
            Self::News => "points: news-consumer",
            Self::NewsRevised => "points: news-consumer, revised item",
            Self::Price => "points: price-consumer",
            Self::PriceCorrected => "points: price-consumer, corrected window",
            Self::Explain => "points: explain-consumer",
            Self::DeadLetter => "points: dead-letter",
            Self::Reconciler => "points: reconciler",
            Self::Redrive => "points: operator, redrive",
            Self::Dismiss => "points: operator, dismiss",
        }
    }

    /// The executable that is struck.
    fn component(self) -> &'static str {
        match self {
            Self::Producer | Self::Consumer | Self::ConsumerOfSuspects => "subject",
            Self::Relay | Self::RelayInTrouble | Self::RelayWithBadEvents => "relay",
            Self::Collector | Self::CollectorCorrecting => "collector",
            Self::News | Self::NewsRevised => "news-consumer",
            Self::Price | Self::PriceCorrected => "price-consumer",
            Self::Explain => "explain-consumer",
            Self::DeadLetter => "dead-letter",
            Self::Reconciler => "reconciler",
            Self::Redrive | Self::Dismiss => "operator",
        }
    }

    pub fn is_built(self, stand: &Stand) -> bool {
        stand.components.path(self.component()).is_file()
    }

    pub fn consumers(self) -> Consumers {
        if self.has_market() { Consumers::Product } else { Consumers::Subject }
    }

    fn has_market(self) -> bool {
        matches!(
            self,
            Self::Collector
                | Self::CollectorCorrecting
                | Self::News
                | Self::NewsRevised
                | Self::Price
                | Self::PriceCorrected
                | Self::Explain
        )
    }
}

/// A case in its world, round after round.
pub struct Subjects<'a> {
    world: &'a World,
    case: Case,
    round: i64,
    market: Market,
}

impl<'a> Subjects<'a> {
    pub async fn new(world: &'a World, case: Case) -> Result<Self> {
        subject::create_tables(&world.db).await?;
        Ok(Self { world, case, round: 0, market: Market::open(world)? })
    }

    /// Where passages are noted.
    pub fn notes(&self) -> PathBuf {
        self.world.folder.join("passages")
    }

    pub async fn broken(&self) -> Result<Vec<String>> {
        super::broken(&self.world.db, !self.case.has_market()).await
    }

    /// Everything up to the moment before the component runs.
    pub async fn arrange(&mut self, crew: &mut Crew<'_>) -> Result<()> {
        self.round += 1;
        match self.case {
            Case::Producer => Ok(()),
            Case::Relay | Case::RelayInTrouble => self.commit(&["succeed", "succeed"]).await,
            Case::RelayWithBadEvents => {
                self.commit(&["succeed", "succeed"]).await?;
                self.run("update outbox_event set body = '' where status = 'NEW' and sequence % 2 = 0").await
            }
            Case::Consumer => {
                self.commit(&["succeed", "fail-once", "refuse", "stale", "panic", "follow-up"]).await?;
                crew.relay().await.map(drop)
            }
            Case::ConsumerOfSuspects => {
                self.commit(&["succeed", "fail-once"]).await?;
                self.run("update job set attempt_count = 1, status = 'RETRY' where status = 'PENDING'")
                    .await?;
                crew.relay().await.map(drop)
            }
            Case::Collector => self.market.next_day(),
            Case::CollectorCorrecting => {
                self.collected_and_done(crew).await?;
                self.market.correct("120")
            }
            Case::News | Case::Price => {
                self.market.next_day()?;
                self.collect(crew).await?;
                crew.relay().await.map(drop)
            }
            Case::NewsRevised | Case::PriceCorrected => {
                self.collected_and_done(crew).await?;
                self.market.correct(if self.round % 2 == 0 { "120" } else { "100" })?;
                self.collect(crew).await?;
                crew.relay().await.map(drop)
            }
            Case::Explain => {
                self.market.next_day()?;
                self.collect(crew).await?;
                crew.relay().await?;
                crew.consume().await?;
                crew.relay().await.map(drop)
            }
            Case::DeadLetter => self.given_up().await,
            Case::Reconciler => {
                self.commit(&["succeed", "succeed"]).await?;
                crew.relay().await?;
                self.world.queue(subject::DESTINATION).purge().await?;
                crew.time_passes(std::time::Duration::from_secs(900)).await
            }
            Case::Redrive | Case::Dismiss => {
                self.commit(&["refuse", "refuse"]).await?;
                crew.settle().await
            }
        }
    }

    /// Runs the component with what `with` adds to its environment; whether it died by the strike.
    pub async fn strike(
        &mut self,
        crew: &mut Crew<'_>,
        with: impl FnOnce(Environment) -> Environment,
    ) -> Result<bool> {
        let destination = match self.case {
            Case::Price | Case::PriceCorrected => "price",
            Case::Explain => "explain",
            _ => "news",
        };
        let mut environment = with(self.world.environment(destination));
        match self.case {
            Case::Producer => {
                let name = format!("round-{}", self.round);
                let arguments = ["enqueue", name.as_str(), "succeed", "2"];
                let status = self.world.run_subject(&arguments, &environment).await?;
                // The producer's own schedule runs it again.
                self.world.run_subject(&arguments, &self.world.environment(destination)).await?;
                return Ok(is_137(status));
            }
            Case::RelayInTrouble => {
                let urls =
                    ["news", "price", "explain"].map(|name| (name, format!("http://127.0.0.1:1/0/{name}")));
                environment =
                    environment.with("QUEUE_URLS", json!(std::collections::BTreeMap::from(urls)).to_string());
            }
            _ => {}
        }
        let mut sandbox = self.world.start(self.case.component(), &environment).await?;
        let died = match self.case {
            Case::Consumer
            | Case::ConsumerOfSuspects
            | Case::News
            | Case::NewsRevised
            | Case::Price
            | Case::PriceCorrected
            | Case::Explain => crew.mapping(destination).drain(&mut sandbox).await?,
            Case::DeadLetter => crew.dead_letter_mapping(destination).drain(&mut sandbox).await?,
            _ => Some(sandbox.invoke(self.event().await?, FUNCTION_TIMEOUT).await),
        };
        self.again(crew, &died).await?;
        died_by_strike(died)
    }

    /// What a schedule, or a person who got no answer, does after the death.
    async fn again(&mut self, crew: &mut Crew<'_>, died: &Option<Invoked>) -> Result<()> {
        let died = died.as_ref().is_some_and(Invoked::was_killed);
        match self.case {
            Case::Collector | Case::CollectorCorrecting if died => self.collect(crew).await,
            Case::Dismiss | Case::Redrive if died => {
                let event = self.event().await?;
                crew.invoke("operator", event).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    async fn event(&self) -> Result<Value> {
        let action = match self.case {
            Case::Collector | Case::CollectorCorrecting => return Ok(self.market.request()),
            Case::Redrive => "redrive",
            Case::Dismiss => "dismiss",
            _ => return Ok(json!({})),
        };
        let ids: Vec<String> =
            (0..2).map(|number| subject::job_id(&self.name(), number).to_string()).collect();
        Ok(json!({ "action": action, "job_ids": ids, "who": "faults", "why": "a strike" }))
    }

    fn name(&self) -> String {
        format!("round-{}", self.round)
    }

    async fn commit(&self, behaviours: &[&str]) -> Result<()> {
        let name = self.name();
        let jobs: Vec<_> =
            (0..).zip(behaviours).map(|(number, behave)| subject::job(&name, number, behave)).collect();
        subject::commit(&self.world.db, &jobs).await
    }

    async fn run(&self, statement: &'static str) -> Result<()> {
        sqlx::query(statement).execute(&self.world.db).await?;
        Ok(())
    }

    async fn collect(&self, crew: &mut Crew<'_>) -> Result<()> {
        crew.invoke("collector", self.market.request()).await.map(drop)
    }

    async fn collected_and_done(&mut self, crew: &mut Crew<'_>) -> Result<()> {
        self.market.next_day()?;
        self.collect(crew).await?;
        crew.settle().await
    }

    /// Messages in the dead-letter queue: of a job that can go back, of one that can not, of one that is
    /// done, and one that nobody can read.
    async fn given_up(&self) -> Result<()> {
        self.commit(&["succeed", "succeed"]).await?;
        self.run("update outbox_event set status = 'PUBLISHED', published_at = now() where status = 'NEW'")
            .await?;
        sqlx::query("update job set attempt_count = max_attempts, status = 'RETRY' where job_id = $1")
            .bind(subject::job_id(&self.name(), 1).as_str())
            .execute(&self.world.db)
            .await?;
        let mut bodies: Vec<String> = sqlx::query_scalar(
            "select body from outbox_event join job using (job_id) where finished_at is null",
        )
        .fetch_all(&self.world.db)
        .await?;
        bodies.push(format!("nobody can read this ({})", self.round));
        self.world.dead_letters(subject::DESTINATION).send(&bodies).await
    }
}

/// Whether the strike ended the process; any other failure of the component is an error.
fn died_by_strike(ended: Option<Invoked>) -> Result<bool> {
    match ended {
        None | Some(Invoked::Answered(_)) => Ok(false),
        Some(ended) if ended.was_killed() => Ok(true),
        Some(other) => Err(format!("{other:?}").into()),
    }
}
