//! The race between a late writer and the sweeper, step by step: no order of steps deletes what is live.
//!
//! Writers (PUT, BEGIN, refer, COMMIT) and sweepers (look, claim, delete) are the product's own; a seed
//! decides who does the next step and who dies. `ROUNDS` makes it longer; a failing round names its seed.

use std::time::Duration;

use domain::identity::sha256_hex;
use futures::future::join_all;
use runtime::sweeper::request::Person;
use runtime::sweeper::{Order, Policy, page};
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, Postgres, Transaction};
use store::artifact::{NewArtifact, refer};
use store::sweep::{Doomed, Position};
use testkit::TwinBucket;

use crate::fixtures::{OLD, adopted, key, order, policy, state};

const ROUNDS: u64 = 2_000;
/// A statement that waits for a step of somebody else gives up: only one step is made at a time.
const LOCK_TIMEOUT: &str = "1ms";
const KEYS_OF_A_WRITER_MAX: u32 = 4;

/// Somebody who writes one artifact, and tries again under a new key when its key was taken.
struct Writer<'a> {
    name: String,
    tries: u32,
    state: Writing<'a>,
}

enum Writing<'a> {
    Nothing,
    Put,
    Began(Transaction<'a, Postgres>),
    Referred(Transaction<'a, Postgres>),
    Committed,
    Dead,
}

impl<'a> Writer<'a> {
    fn key(&self) -> String {
        format!("{}-{}", self.name, self.tries)
    }

    /// One step; whether the sweeper was faster.
    async fn step(&mut self, db: &'a PgPool, bucket: &TwinBucket) -> bool {
        let (next, collided) = match std::mem::replace(&mut self.state, Writing::Dead) {
            Writing::Nothing => {
                bucket.put(&self.key(), self.name.as_bytes(), OLD);
                (Writing::Put, false)
            }
            Writing::Put => (Writing::Began(db.begin().await.unwrap()), false),
            Writing::Began(mut tx) => {
                let (key, sha256) = (self.key(), sha256_hex(self.name.as_bytes()));
                let size_bytes = i64::try_from(self.name.len()).unwrap();
                let new = NewArtifact { key: &key, sha256: &sha256, size_bytes, owner: "window" };
                match refer(&mut *tx, &[new]).await {
                    Ok(()) => (Writing::Referred(tx), false),
                    Err(store::Error::ArtifactReclaimed) => {
                        tx.rollback().await.unwrap();
                        self.tries += 1;
                        let dead = self.tries >= KEYS_OF_A_WRITER_MAX;
                        (if dead { Writing::Dead } else { Writing::Nothing }, true)
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
            Writing::Referred(tx) => {
                tx.commit().await.unwrap();
                (Writing::Committed, false)
            }
            over => (over, false),
        };
        self.state = next;
        collided
    }

    async fn die(&mut self) {
        match std::mem::replace(&mut self.state, Writing::Dead) {
            Writing::Began(tx) | Writing::Referred(tx) => tx.rollback().await.unwrap(),
            Writing::Committed => self.state = Writing::Committed,
            _ => {}
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.state, Writing::Committed | Writing::Dead)
    }
}

/// Somebody who sweeps the keys of a round, again and again.
enum Sweeping {
    Nothing,
    Looked(Vec<Doomed>),
    Claimed(Vec<Doomed>),
}

impl Sweeping {
    /// One step; whether it had to give way to a writer whose transaction is open.
    async fn step(&mut self, db: &PgPool, bucket: &TwinBucket, round: &Position) -> bool {
        let (next, gave_way) = match std::mem::replace(self, Self::Nothing) {
            Self::Nothing => {
                let now = chrono::Utc::now();
                let page = page::look(db, bucket, &policy(), round, now).await.unwrap();
                (Self::Looked([page.found.orphans, page.found.leftovers].concat()), false)
            }
            Self::Looked(objects) => match page::claim(db, &objects).await {
                Ok(claimed) => (Self::Claimed(claimed), false),
                Err(_) => (Self::Nothing, true),
            },
            Self::Claimed(claimed) => {
                page::delete(db, bucket, &claimed).await.unwrap();
                (Self::Nothing, false)
            }
        };
        *self = next;
        gave_way
    }
}

/// What the rounds saw, so that none of it can be missed unnoticed.
#[derive(Debug, Default)]
struct Tally {
    committed: u32,
    collided: u32,
    gave_way: u32,
    deleted: usize,
}

fn position(round: u64) -> Position {
    let hour = key("", OLD);
    Position {
        step: 0,
        cursor_key: format!("{hour}{round:06}"),
        until_key: Some(format!("{hour}{:06}", round + 1)),
        started_at: None,
        swept_from: String::new(),
        checksums: false,
    }
}

async fn play(seed: u64, db: &PgPool, impatient: &PgPool, bucket: &TwinBucket, tally: &mut Tally) {
    let mut random = fastrand::Rng::with_seed(seed);
    let round = position(seed);
    let mut writers: Vec<_> = (0..3)
        .map(|number| {
            let name = format!("{}-{number}", round.cursor_key);
            Writer { name, tries: 0, state: Writing::Nothing }
        })
        .collect();
    let mut sweepers = [Sweeping::Nothing, Sweeping::Nothing];
    while writers.iter().any(|writer| !writer.is_over()) {
        match random.usize(0..12) {
            actor @ 0..=7 if random.u32(0..25) == 0 => writers[actor % 3].die().await,
            actor @ 0..=7 => tally.collided += u32::from(writers[actor % 3].step(db, bucket).await),
            actor @ 8..=10 => {
                let gave_way = sweepers[actor % 2].step(impatient, bucket, &round).await;
                tally.gave_way += u32::from(gave_way);
            }
            actor if random.u32(0..5) == 0 => sweepers[actor % 2] = Sweeping::Nothing, // it dies
            _ => {}
        }
    }
    // Ends what each is at, and a whole look, claim and deletion after it.
    for _ in 0..6 {
        for sweeper in &mut sweepers {
            sweeper.step(impatient, bucket, &round).await;
        }
    }
    settle(seed, db, bucket, &writers, &round, tally).await;
}

async fn settle(
    seed: u64,
    db: &PgPool,
    bucket: &TwinBucket,
    writers: &[Writer<'_>],
    round: &Position,
    tally: &mut Tally,
) {
    let mut live = Vec::new();
    for writer in writers.iter().filter(|writer| matches!(writer.state, Writing::Committed)) {
        assert_eq!(state(db, &writer.key()).await.as_deref(), Some("REFERENCED"), "seed {seed}");
        assert!(bucket.holds(&writer.key()), "seed {seed}: a live object was deleted");
        live.push(writer.key());
    }
    let left = bucket.keys().into_iter().filter(|key| key.starts_with(&round.cursor_key));
    assert_eq!(left.collect::<Vec<_>>(), live, "seed {seed}: an orphan was left");
    tally.committed += u32::try_from(live.len()).unwrap();
    // What is over is out of the way of the next round's listings.
    for key in live {
        bucket.lose(&key);
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn no_order_of_steps_deletes_what_is_live_or_leaves_an_orphan(db: PgPool) {
    let rounds = std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    let options = (*db.connect_options()).clone().options([("lock_timeout", LOCK_TIMEOUT)]);
    let impatient = PgPoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    let bucket = TwinBucket::default();
    let mut tally = Tally::default();

    for seed in 0..rounds {
        play(seed, &db, &impatient, &bucket, &mut tally).await;
    }
    tally.deleted = bucket.deleted().len();

    println!("{rounds} rounds: {tally:?}");
    let rounds = u32::try_from(rounds).unwrap();
    assert!(tally.committed > rounds, "{tally:?}");
    assert!(tally.collided > rounds / 10 && tally.gave_way > rounds / 50, "{tally:?}");
    assert!(tally.deleted > tally.collided as usize, "{tally:?}");
}

/// One artifact, written until it is committed or its writer dies; its key, if it lives.
async fn write(db: &PgPool, bucket: &TwinBucket, name: &str, dies: bool) -> Option<String> {
    for _ in 0..20 {
        let key = key(&format!("{name}-{}", fastrand::u64(..)), OLD);
        bucket.put(&key, name.as_bytes(), OLD);
        if dies {
            return None;
        }
        tokio::task::yield_now().await;
        let mut tx = db.begin().await.unwrap();
        let sha256 = sha256_hex(name.as_bytes());
        let size_bytes = i64::try_from(name.len()).unwrap();
        let new = NewArtifact { key: &key, sha256: &sha256, size_bytes, owner: "window" };
        match refer(&mut *tx, &[new]).await {
            Ok(()) => {
                tx.commit().await.unwrap();
                return Some(key);
            }
            Err(store::Error::ArtifactReclaimed) => tx.rollback().await.unwrap(),
            Err(error) => panic!("{error:?}"),
        }
    }
    panic!("{name} lost against the sweeper twenty times")
}

#[sqlx::test(migrations = "../../migrations")]
async fn writers_and_whole_sweepers_at_once_lose_nothing(db: PgPool) {
    const WRITERS: u32 = 6;
    let bucket = adopted(&db).await;
    let person = Person { who: "test".to_owned(), why: "everything, each time".to_owned() };
    let audit = Order::Audit { checksums: false, person };
    let hasty = Policy {
        max_deletes: 100_000,
        grace: Duration::from_secs(1),
        longest_write: Duration::ZERO,
        ..policy()
    };
    let sweeping = async {
        for _ in 0..60 {
            order(&db, &bucket, &hasty, &audit).await.unwrap();
        }
    };
    let writing = join_all((0..WRITERS).map(|writer| {
        let (db, bucket) = (&db, &bucket);
        async move {
            let mut live = Vec::new();
            for number in 0..50 {
                live.extend(write(db, bucket, &format!("{writer}-{number}"), number % 5 == 0).await);
            }
            live
        }
    }));

    let (live, ()) = futures::future::join(writing, sweeping).await;
    order(&db, &bucket, &hasty, &audit).await.unwrap();

    let live = live.concat();
    assert_eq!(live.len(), 240);
    assert!(live.iter().all(|key| bucket.holds(key)), "a live object was deleted");
    let left = bucket.keys().into_iter().filter(|key| key.starts_with("artifacts/")).count();
    assert_eq!(left, 240 + 1, "an orphan was left");
}
