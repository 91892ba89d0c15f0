//! The sweeper and the janitor against S3 and PostgreSQL, with writers that die, freeze and come late.

mod bucket;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};
use system_tests::Result;
use system_tests::market::Market;
use system_tests::sandbox::Invoked;
use system_tests::subject;
use system_tests::world::{Environment, FUNCTION_TIMEOUT, Stand, World, timeout_of};

use crate::points::Passed;
use crate::report::Finding;
use crate::{Extent, Scenario};
use bucket::Objects;

/// Names of keys as no product writes them, and S3 takes them.
const STRANGE: [&str; 10] =
    ["a b", "ü/雪/🚃", "+", "a+b c", "%", "%2B", "line\nbreak", "cr\rlf\n", "tab\t", "a&b<c>\"'"];
/// Objects that are not the product's, or no objects.
const NOT_OURS: [&str; 5] = [
    "artifacts/",
    "artifacts/2020/01/01/00/",
    "artifacts/readme.txt",
    "artifacts-2/2020/01/01/00/a",
    "other",
];

/// All of them.
pub fn all<'a>(stand: &'a Stand, extent: Extent, passed: &Passed) -> Vec<(&'static str, Scenario<'a>)> {
    let passed = || std::rc::Rc::clone(passed);
    vec![
        ("sweep: writers die between PUT and COMMIT", Box::pin(orphans(stand, extent.n)) as Scenario),
        ("sweep: a writer commits after the sweep", Box::pin(late_writer(stand))),
        ("sweep: keys of every kind", Box::pin(strange_keys(stand))),
        ("sweep: a bucket that keeps versions", Box::pin(versions(stand, passed()))),
        ("sweep: an object is replaced before its deletion", Box::pin(replaced(stand, passed()))),
        ("sweep: the sweeper dies at every point", Box::pin(sweeper_dies(stand, passed()))),
        ("sweep: the janitor dies at every point", Box::pin(janitor_dies(stand, passed()))),
    ]
}

/// A world whose bucket was adopted while it was empty.
struct Swept<'a> {
    world: World,
    objects: Objects<'a>,
}

impl<'a> Swept<'a> {
    async fn new(stand: &'a Stand) -> Result<Self> {
        let world = stand.world("sweep").await?;
        subject::create_tables(&world.db).await?;
        let objects = Objects::new(stand, world.bucket());
        let swept = Self { world, objects };
        let report = swept.sweep().await?;
        if report["adopted"] == true { Ok(swept) } else { Err(format!("not adopted: {report}").into()) }
    }

    /// Switched on, and as hasty as it can be: the protocol does not depend on its patience.
    fn environment(&self) -> Environment {
        let hasty = [
            ("SWEEP_DELETE", "true"),
            ("SWEEP_GRACE_SECONDS", "0.001"),
            ("SWEEP_LONGEST_WRITE_SECONDS", "0"),
            ("SWEEP_MAX_ORPHAN_RATIO", "1"),
            ("QUEUE_RETENTION_SECONDS", "345600"),
            ("DEAD_LETTER_RETENTION_SECONDS", "1209600"),
        ];
        let environment = self.world.environment(subject::DESTINATION).noting(&self.notes());
        hasty.into_iter().fold(environment, |environment, (name, value)| environment.with(name, value))
    }

    /// One that reaches its bound in the middle of a page.
    fn bounded(&self) -> Environment {
        self.environment().with("SWEEP_MAX_DELETES", "1")
    }

    fn notes(&self) -> PathBuf {
        self.world.folder.join("passages")
    }

    /// The points that were passed in this world, in the order in which they first were.
    fn passages(&self) -> Result<Vec<String>> {
        let mut seen = BTreeSet::new();
        let noted = std::fs::read_to_string(self.notes())?;
        Ok(noted.lines().filter(|name| seen.insert((*name).to_owned())).map(str::to_owned).collect())
    }

    async fn run(&self, component: &str, environment: &Environment, event: &Value) -> Result<Invoked> {
        let mut sandbox = self.world.start(component, environment).await?;
        Ok(sandbox.invoke(event.clone(), timeout_of(component)).await)
    }

    async fn sweep(&self) -> Result<Value> {
        match self.run("sweeper", &self.environment(), &audit()).await? {
            Invoked::Answered(report) => Ok(report),
            other => Err(format!("sweeper: {other:?}").into()),
        }
    }

    /// Artifacts that rows refer to.
    async fn live(&self) -> Result<BTreeSet<String>> {
        let live = "select key from artifact where state = 'REFERENCED'";
        Ok(sqlx::query_scalar(live).fetch_all(&self.world.db).await?.into_iter().collect())
    }

    /// Every row has its object, and every artifact its row.
    async fn whole(&self, finding: &mut Finding) -> Result<()> {
        let (live, there) = (self.live().await?, self.objects.artifacts().await?);
        finding.expect("live_deleted", count(live.difference(&there)), 0);
        finding.expect("orphans_left", count(there.difference(&live)), 0);
        Ok(())
    }

    /// An artifact with its object and its row.
    async fn commit(&self, name: &str) -> Result<String> {
        let key = self.objects.put(name).await?;
        sqlx::query("insert into artifact (key, state, sha256, size_bytes, owner) values ($1, 'REFERENCED', $2, $3, 'test')")
            .bind(&key)
            .bind(domain::identity::sha256_hex(name.as_bytes()))
            .bind(i64::try_from(name.len())?)
            .execute(&self.world.db)
            .await?;
        Ok(key)
    }
}

/// Everything is looked at, and read: no scenario depends on the hour it runs in.
fn audit() -> Value {
    json!({ "audit": true, "checksums": true, "who": "faults", "why": "a look at everything" })
}

fn count<T>(things: impl Iterator<Item = T>) -> i64 {
    i64::try_from(things.count()).unwrap_or(i64::MAX)
}

fn number(report: &Value, field: &str) -> i64 {
    report[field].as_i64().unwrap_or(-1)
}

async fn orphans(stand: &Stand, n: u32) -> Result<Finding> {
    let swept = Swept::new(stand).await?;
    let mut finding = Finding::default();
    let mut market = Market::open(&swept.world)?;
    let dying = swept.world.environment("price").with_fault("s3::put_object.after:kill:1");
    let mut deaths = 0;
    for round in 0..n {
        if round % 10 == 0 {
            market.next_day()?;
        }
        deaths += i64::from(swept.run("collector", &dying, &market.request()).await?.was_killed());
        if round % 10 == 9 || round + 1 == n {
            let collected =
                swept.run("collector", &swept.world.environment("price"), &market.request()).await?;
            if !matches!(collected, Invoked::Answered(_)) {
                return Err(format!("collector: {collected:?}").into());
            }
        }
    }
    finding.expect("deaths", deaths, n);
    finding.note("live", count(swept.live().await?.iter()));

    let report = swept.sweep().await?;

    finding.expect("orphans", number(&report, "orphans"), n);
    finding.expect("reclaimed", number(&report, "reclaimed"), n);
    finding.expect("missing", number(&report, "missing"), 0);
    swept.whole(&mut finding).await?;
    swept.world.end().await?;
    Ok(finding)
}

async fn late_writer(stand: &Stand) -> Result<Finding> {
    let swept = Swept::new(stand).await?;
    let mut finding = Finding::default();
    let mut market = Market::open(&swept.world)?;
    swept.commit("something that lives").await?;
    market.next_day()?;
    let environment = swept.world.environment("price").with_fault("s3::put_object.after:stop:1");
    let mut frozen = swept.world.start("collector", &environment).await?;
    let answer = frozen.begin(market.request(), timeout_of("collector"));
    frozen.frozen().await?;

    let report = swept.sweep().await?;
    finding.expect("reclaimed", number(&report, "reclaimed"), 1);
    frozen.thaw();
    let answered = tokio::time::timeout(timeout_of("collector"), answer).await;
    finding.expect("answers", i64::from(matches!(answered, Ok(Ok(Ok(_))))), 1);

    let windows =
        swept.world.count("select count(*) from collection_window where artifact_key is not null").await?;
    finding.expect("windows", windows, 2);
    let taken = swept.world.count("select count(*) from artifact where state = 'RECLAIMED'").await?;
    finding.expect("keys_given_up", taken, 1);
    // What the thawed collector wrote beside the key it lost, such as the rest of its batch.
    swept.sweep().await?;
    swept.whole(&mut finding).await?;
    swept.world.end().await?;
    Ok(finding)
}

async fn strange_keys(stand: &Stand) -> Result<Finding> {
    let swept = Swept::new(stand).await?;
    let mut finding = Finding::default();
    let kept = swept.commit("a+b %2B c").await?;
    for name in STRANGE {
        swept.objects.put(name).await?;
    }
    swept.objects.put_longest().await?;
    for key in NOT_OURS {
        swept.objects.put_at(key, b"").await?;
    }

    let report = swept.sweep().await?;

    finding.expect("reclaimed", number(&report, "reclaimed"), i64::try_from(STRANGE.len() + 1)?);
    finding.expect("failed", number(&report, "failed"), 0);
    let there = swept.objects.all().await?;
    finding.expect(
        "not_ours",
        count(NOT_OURS.iter().filter(|key| there.contains(**key))),
        i64::try_from(NOT_OURS.len())?,
    );
    finding.expect("live", i64::from(there.contains(&kept)), 1);
    let marker = count(there.iter().filter(|key| key.ends_with("installation.json")));
    finding.expect("left", count(there.iter()), i64::try_from(NOT_OURS.len())? + 1 + marker);
    swept.world.end().await?;
    Ok(finding)
}

async fn versions(stand: &Stand, passed: Passed) -> Result<Finding> {
    let swept = Swept::new(stand).await?;
    let mut finding = Finding::default();
    swept.objects.keep_versions().await?;
    let kept = swept.commit("live").await?;
    for name in ["one", "two"] {
        swept.objects.put(name).await?;
    }

    let report = swept.sweep().await?;

    finding.expect("reclaimed", number(&report, "reclaimed"), 2);
    finding.expect("failed", number(&report, "failed"), 0);
    let (versions, markers) = swept.objects.versions().await?;
    finding.expect("versions_left", count(versions.iter().filter(|key| **key != kept)), 0);
    finding.expect("markers_left", count(markers.iter()), 0);
    finding.expect("live_versions", count(versions.iter().filter(|key| **key == kept)), 1);
    passed.borrow_mut().extend(swept.passages()?);
    swept.world.end().await?;
    Ok(finding)
}

/// Nobody does that to an artifact; the condition on the `ETag` holds all the same.
async fn replaced(stand: &Stand, passed: Passed) -> Result<Finding> {
    let swept = Swept::new(stand).await?;
    let mut finding = Finding::default();
    swept.commit("live").await?;
    let key = swept.objects.put("replaced").await?;
    let environment = swept.environment().with_fault("s3::delete_objects.before:stop:1");
    let mut frozen = swept.world.start("sweeper", &environment).await?;
    let answer = frozen.begin(audit(), FUNCTION_TIMEOUT);
    frozen.frozen().await?;
    swept.objects.put_at(&key, b"other bytes").await?;
    frozen.thaw();

    let report = match tokio::time::timeout(FUNCTION_TIMEOUT, answer).await {
        Ok(Ok(Ok(report))) => report,
        other => return Err(format!("sweeper: {other:?}").into()),
    };

    finding.expect("failed", number(&report, "failed"), 1);
    finding.expect("replaced_is_there", i64::from(swept.objects.all().await?.contains(&key)), 1);
    let next = swept.sweep().await?;
    finding.expect("reclaimed_by_the_next", number(&next, "reclaimed"), 1);
    swept.whole(&mut finding).await?;
    passed.borrow_mut().extend(swept.passages()?);
    swept.world.end().await?;
    Ok(finding)
}

/// Two orphans, a leftover, a lost object; an audit with checksums, so that every point is passed.
async fn sweeper_dies(stand: &Stand, passed: Passed) -> Result<Finding> {
    let swept = Swept::new(stand).await?;
    let mut finding = Finding::default();
    arrange(&swept, 0).await?;
    swept.run("sweeper", &swept.bounded(), &audit()).await?;
    swept.sweep().await?;
    let passages = swept.passages()?;
    let (mut deaths, mut blows) = (0, 0);
    for (round, passage) in passages.iter().enumerate() {
        if is_of_adoption(passage) {
            continue;
        }
        arrange(&swept, round + 1).await?;
        let moves_inside = passage.starts_with("sweep::advance");
        let environment = if moves_inside { swept.bounded() } else { swept.environment() };
        let environment = environment.with_fault(&format!("{passage}:kill:1"));
        let ended = swept.run("sweeper", &environment, &audit()).await?;
        blows += 1;
        deaths += i64::from(ended.was_killed());
        if !ended.was_killed() {
            finding.violate(format!("{passage}: {ended:?}"));
        }
        swept.sweep().await?;
        swept.sweep().await?;
        swept.whole(&mut finding).await?;
        let pending = swept.world.count("select count(*) from pending_deletion").await?;
        finding.expect("deletions_left", pending, 0);
    }
    finding.expect("deaths", deaths, blows);
    passed.borrow_mut().extend(passages);
    swept.world.end().await?;
    Ok(finding)
}

/// Passed once in a bucket's life; `sweep: …` scenarios all begin with it.
fn is_of_adoption(passage: &str) -> bool {
    ["s3::put_marker", "sweep::adopt"].iter().any(|point| passage.starts_with(point))
}

async fn arrange(swept: &Swept<'_>, round: usize) -> Result<()> {
    swept.commit(&format!("live-{round}")).await?;
    for name in ["one", "two"] {
        swept.objects.put(&format!("{name}-{round}")).await?;
    }
    // The object of the round before comes back, so that its report is taken back.
    let damaged = swept.objects.key("damaged");
    if round == 0 {
        swept.commit("damaged").await?;
    }
    let bytes: &[u8] = if round.is_multiple_of(2) { b"others." } else { b"damaged" };
    swept.objects.put_at(&damaged, bytes).await
}

async fn janitor_dies(stand: &Stand, passed: Passed) -> Result<Finding> {
    let swept = Swept::new(stand).await?;
    let mut finding = Finding::default();
    retire(&swept, 0).await?;
    std::fs::write(swept.notes(), "")?;
    swept.run("janitor", &swept.environment(), &json!({})).await?;
    let passages = swept.passages()?;
    let mut deaths = 0;
    for (round, passage) in passages.iter().enumerate() {
        retire(&swept, round + 1).await?;
        let environment = swept.environment().with_fault(&format!("{passage}:kill:1"));
        deaths += i64::from(swept.run("janitor", &environment, &json!({})).await?.was_killed());
        swept.run("janitor", &swept.environment(), &json!({})).await?;
        finding.expect(
            "jobs_left",
            swept.world.count("select count(*) from job where finished_at is not null").await?,
            0,
        );
    }
    finding.expect("deaths", deaths, i64::try_from(passages.len())?);
    let unfinished = swept.world.count("select count(*) from job where finished_at is null").await?;
    finding.expect("unfinished_kept", unfinished, i64::try_from(passages.len())? + 1);
    passed.borrow_mut().extend(passages);
    swept.world.end().await?;
    Ok(finding)
}

/// Two jobs that are long done, and one that is not.
async fn retire(swept: &Swept<'_>, round: usize) -> Result<()> {
    let name = format!("round-{round}");
    let jobs = [0, 1, 2].map(|number| subject::job(&name, number, "succeed"));
    subject::commit(&swept.world.db, &jobs).await?;
    let done: Vec<String> = (0..2).map(|number| subject::job_id(&name, number).to_string()).collect();
    sqlx::query("update outbox_event set status = 'PUBLISHED', published_at = now() where job_id = any($1)")
        .bind(&done)
        .execute(&swept.world.db)
        .await?;
    sqlx::query(
        "update job set status = 'SUCCEEDED', attempt_count = 1, finished_at = now() - interval '1 year' where job_id = any($1)",
    )
    .bind(&done)
    .execute(&swept.world.db)
    .await?;
    Ok(())
}
