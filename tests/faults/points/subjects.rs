//! How each component is brought to pass its points, and what is done to it there.

use std::path::PathBuf;

use serde_json::{Value, json};
use system_tests::crew::{Crew, STEP};

use system_tests::market::Market;
use system_tests::proxy::Proxy;
use system_tests::sandbox::{Invoked, Sandbox, is_137};
use system_tests::sqs_proxy::{SqsProxy, Weather};
use system_tests::world::{Environment, FUNCTION_TIMEOUT, World, timeout_of};
use system_tests::{Result, invariants, subject};

use super::case::{Case, Source};

/// How long a thawed component has to answer.
const THAW_MAX: std::time::Duration = std::time::Duration::from_mins(1);

/// Too little to start a handler in.
const NO_TIME: std::time::Duration = std::time::Duration::from_millis(400);

/// What happens to a component.
#[derive(Clone)]
pub enum Blow {
    /// Nothing; its passages are noted.
    Watch,
    /// It ends at the first passage of this point.
    Kill(String),
    /// It freezes there while everybody else goes on.
    Freeze(String),
    /// PostgreSQL's answer to the first statement with this text is lost.
    LoseAnswer(String),
}

/// A case in its world, round after round.
pub struct Subjects<'a> {
    proxy: Proxy,
    /// In front of SQS, for the case whose entries fail.
    queues: SqsProxy,
    swallowed: u64,
    world: &'a World,
    case: Case,
    round: i64,
    market: Market,
}

impl<'a> Subjects<'a> {
    pub async fn new(world: &'a World, case: Case) -> Result<Self> {
        subject::create_tables(&world.db).await?;
        let proxy = Proxy::start(&world.server).await?;
        let queues = SqsProxy::start(&std::env::var("AWS_ENDPOINT_URL")?).await?;
        queues.set(Weather::PartialFailure);
        Ok(Self { proxy, queues, swallowed: 0, world, case, round: 0, market: Market::open(world)? })
    }

    /// Where passages are noted.
    pub fn notes(&self) -> PathBuf {
        self.world.folder.join("passages")
    }

    pub async fn broken(&self) -> Result<Vec<String>> {
        if self.case.has_market() {
            invariants::broken_with_market(self.world).await
        } else {
            invariants::broken_with_subject(&self.world.db).await
        }
    }

    /// Everything up to the moment before the component runs.
    pub async fn arrange(&mut self, crew: &mut Crew<'_>) -> Result<()> {
        self.round += 1;
        // Also the leases of whoever died when there was nothing left to do.
        crew.time_passes(STEP).await?;
        match self.case {
            Case::Producer => Ok(()),
            Case::ProducerAgain => self.commit(&["succeed", "succeed"]).await,
            Case::RelayShutOut => {
                crew.relay().await?;
                self.commit(&["succeed"]).await?;
                self.run("update lane set failure_count = 1, retry_at = now() + interval '5 min', last_error = 'on purpose'").await
            }
            Case::RelayRecovering => {
                crew.relay().await?;
                self.commit(&["succeed"]).await?;
                self.run("update lane set failure_count = 1, retry_at = now(), last_error = 'on purpose'")
                    .await
            }
            Case::ConsumerOutOfTime => {
                self.commit(&["succeed", "succeed"]).await?;
                crew.relay().await.map(drop)
            }
            Case::Relay | Case::RelayLingering | Case::RelayInTrouble | Case::RelayPostponing => {
                self.commit(&["succeed", "succeed"]).await
            }
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
            Case::NewsRevised | Case::PriceReplacing | Case::PriceWithdrawing => {
                self.collected_and_done(crew).await?;
                self.market.correct(if self.case == Case::PriceWithdrawing { "100" } else { "120" })?;
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
                crew.time_passes(STEP).await
            }
            Case::Redrive | Case::Dismiss => {
                self.commit(&["refuse", "refuse"]).await?;
                crew.settle().await
            }
        }
    }

    /// Runs the component under `blow`, and what a schedule does after it; whether the blow landed.
    pub async fn strike(&mut self, crew: &mut Crew<'_>, blow: &Blow) -> Result<bool> {
        let environment = self.environment(blow);
        if self.case == Case::Producer || self.case == Case::ProducerAgain {
            return self.produce(blow, &environment).await;
        }
        let mut sandbox = self.world.start(self.case.component(), &environment).await?;
        if matches!(blow, Blow::Freeze(_)) {
            let frozen = self.freeze(crew, &mut sandbox).await?;
            self.again(crew, false).await?;
            return Ok(frozen);
        }
        let ended = self.work(crew, &mut sandbox).await?;
        self.again(crew, matches!(ended, None | Some(Invoked::Answered(_)))).await?;
        match (blow, ended) {
            (Blow::Kill(_), Some(ended)) if ended.was_killed() => Ok(true),
            (Blow::LoseAnswer(_), None | Some(Invoked::Answered(_) | Invoked::Failed(_))) => {
                Ok(self.proxy.swallowed() > std::mem::replace(&mut self.swallowed, self.proxy.swallowed()))
            }
            (_, None | Some(Invoked::Answered(_))) => Ok(false),
            (_, Some(other)) => Err(format!("{other:?}").into()),
        }
    }

    fn environment(&self, blow: &Blow) -> Environment {
        let mut environment = self.world.environment_for(self.case.component(), self.destination());
        if self.case == Case::RelayInTrouble {
            let urls =
                ["news", "price", "explain"].map(|name| (name, format!("http://127.0.0.1:1/0/{name}")));
            environment =
                environment.with("QUEUE_URLS", json!(std::collections::BTreeMap::from(urls)).to_string());
        }
        if self.case == Case::RelayPostponing {
            environment = environment.with("AWS_ENDPOINT_URL_SQS", self.queues.url());
        }
        if self.case == Case::RelayLingering {
            // Long enough that the lease has to be renewed.
            for (name, seconds) in [("LINGER", "2"), ("LEASE", "2"), ("SEND_TIMEOUT", "1")] {
                environment = environment.with(&format!("RELAY_{name}_SECONDS"), seconds);
            }
        }
        match blow {
            Blow::Watch => environment.noting(&self.notes()),
            Blow::Kill(passage) => environment.with_fault(&format!("{passage}:kill:1")),
            Blow::Freeze(passage) => environment.with_fault(&format!("{passage}:stop:1")),
            Blow::LoseAnswer(text) => {
                self.proxy.swallow(text, 1);
                environment.through(self.proxy.address())
            }
        }
    }

    fn destination(&self) -> &'static str {
        match self.case {
            Case::Price | Case::PriceReplacing | Case::PriceWithdrawing => "price",
            Case::Explain => "explain",
            _ => "news",
        }
    }

    /// The producer, and again after it: its identity fields are the same, so that the second run
    /// finishes the first or does nothing.
    async fn produce(&mut self, blow: &Blow, environment: &Environment) -> Result<bool> {
        let name = self.name();
        let arguments = ["enqueue", name.as_str(), "succeed", "2"];
        let status = self.world.run_subject(&arguments, environment).await?;
        self.world.run_subject(&arguments, &self.world.environment("news")).await?;
        Ok(match blow {
            Blow::LoseAnswer(_) => {
                self.proxy.swallowed() > std::mem::replace(&mut self.swallowed, self.proxy.swallowed())
            }
            _ => is_137(status),
        })
    }

    /// The component does what there is to do.
    async fn work(&mut self, crew: &mut Crew<'_>, sandbox: &mut Sandbox) -> Result<Option<Invoked>> {
        let destination = self.destination();
        match self.case.source() {
            Source::Queue if self.case == Case::ConsumerOutOfTime => {
                crew.mapping(destination).deadline = NO_TIME;
                let ended = crew.mapping(destination).drain(sandbox).await;
                crew.mapping(destination).deadline = FUNCTION_TIMEOUT;
                ended
            }
            Source::Queue => crew.mapping(destination).drain(sandbox).await,
            Source::DeadLetters => crew.dead_letter_mapping(destination).drain(sandbox).await,
            Source::Event => Ok(Some(sandbox.invoke(self.event(), timeout_of(self.case.component())).await)),
        }
    }

    /// The component freezes; everybody else goes on until nothing is left to do; it is thawed and its
    /// answer taken for what it is.
    async fn freeze(&mut self, crew: &mut Crew<'_>, sandbox: &mut Sandbox) -> Result<bool> {
        let destination = self.destination();
        let mapping = match self.case.source() {
            Source::Queue => Some(crew.mapping(destination)),
            Source::DeadLetters => Some(crew.dead_letter_mapping(destination)),
            Source::Event => None,
        };
        let (event, batch) = match mapping {
            None => (self.event(), None),
            Some(mapping) => {
                let Some(batch) = mapping.receive().await? else { return Ok(false) };
                (mapping.event(&batch), Some(batch))
            }
        };
        let deadline =
            if self.case == Case::ConsumerOutOfTime { NO_TIME } else { timeout_of(self.case.component()) };
        let answer = sandbox.begin(event, deadline);
        tokio::pin!(answer);
        tokio::select! {
            frozen = sandbox.frozen() => frozen?,
            _ = &mut answer => return Ok(false),
        }
        crew.time_passes(STEP).await?;
        if self.case.has_market() {
            self.collect(crew).await?;
        }
        crew.settle().await?;
        sandbox.thaw();
        let answered = tokio::time::timeout(THAW_MAX, answer).await;
        let invoked = match answered {
            Ok(Ok(answer)) => answer.map_or_else(Invoked::Failed, Invoked::Answered),
            _ => return Err("it did not answer after the thaw".into()),
        };
        if let Some(batch) = batch {
            let mapping = match self.case.source() {
                Source::DeadLetters => crew.dead_letter_mapping(destination),
                _ => crew.mapping(destination),
            };
            mapping.settle(&batch, &invoked).await?;
        }
        Ok(true)
    }

    /// What a schedule, or a person who got no answer, does afterwards.
    async fn again(&mut self, crew: &mut Crew<'_>, answered: bool) -> Result<()> {
        match self.case {
            Case::Collector | Case::CollectorCorrecting => self.collect(crew).await,
            Case::Dismiss | Case::Redrive if !answered => {
                let event = self.event();
                crew.invoke("operator", event).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    fn event(&self) -> Value {
        let action = match self.case {
            Case::Collector => return self.market.schedule(),
            Case::CollectorCorrecting => return self.market.request(),
            Case::Redrive => "redrive",
            Case::Dismiss => {
                let filter = json!({ "reason": "REFUSED" });
                return json!({ "action": "dismiss", "filter": filter, "who": "faults", "why": "a blow" });
            }
            _ => return json!({}),
        };
        let ids: Vec<String> =
            (0..2).map(|number| subject::job_id(&self.name(), number).to_string()).collect();
        json!({ "action": action, "job_ids": ids, "who": "faults", "why": "a blow" })
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
        let report = crew.invoke("collector", self.market.request()).await?;
        let faults = report["datasets"][0]["faults"].as_array().map_or(0, Vec::len);
        if faults == 0 { Ok(()) } else { Err(format!("the market was not read: {report}").into()) }
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
        let dead_letters = self.world.dead_letters(subject::DESTINATION);
        // Unreadable messages stay for ever; those of many rounds would fill a receive.
        dead_letters.purge().await?;
        dead_letters.send(&bodies).await
    }
}
