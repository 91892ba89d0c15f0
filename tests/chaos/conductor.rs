//! Lets things happen to the sites when the plan says so, while everybody works.

use std::io::IsTerminal;
use std::time::Duration;

use futures::future::join_all;
use indicatif::{ProgressBar, ProgressStyle};
use rustix::process::{Pid, Signal, kill_process};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgPool};
use system_tests::Result;
use system_tests::plan::{Entry, Happening};
use tokio::time::{Instant, sleep_until};

use crate::site::Site;
use crate::worker::{self, Worker};

/// Runs the crowd of each site for `duration` with everything that happens, and then ends it. Gives what
/// a worker could not cope with: the stand's own troubles, never the components'.
pub async fn run(sites: &[Site], plan: &[Entry], seed: u64, duration: Duration) -> Vec<String> {
    let end = Instant::now() + duration;
    let workers: Vec<Vec<Worker>> = sites.iter().map(|site| worker::crowd(site.consumers, seed)).collect();
    let crowds = sites
        .iter()
        .zip(&workers)
        .flat_map(|(site, workers)| workers.iter().map(move |worker| worker::work(site, worker, end)));
    let (troubles, ()) = tokio::join!(join_all(crowds), conduct(sites, &workers, plan, duration));
    troubles.into_iter().filter_map(Result::err).map(|error| format!("the stand: {error}")).collect()
}

async fn conduct(sites: &[Site], workers: &[Vec<Worker>], plan: &[Entry], duration: Duration) {
    let (started, bar) = (Instant::now(), progress(duration));
    for entry in plan {
        sleep_until(started + entry.at).await;
        let number = entry.site % sites.len();
        happen(&sites[number], &workers[number], entry.what).await;
        bar.set_position(entry.at.as_secs());
    }
    sleep_until(started + duration).await;
    bar.finish_and_clear();
    for (site, workers) in sites.iter().zip(workers) {
        site.calm();
        workers.iter().filter_map(Worker::handle).for_each(|process| process.thaw());
    }
}

/// Lets one thing happen. The database may be away for us as well: then it does not, or is over.
async fn happen(site: &Site, workers: &[Worker], what: Happening) {
    let chosen = what.whom().map(|who| &workers[who % workers.len()]);
    site.note(what, chosen);
    match what {
        Happening::Kill(_) => {
            if let Some(process) = chosen.and_then(Worker::handle) {
                process.kill();
            }
        }
        Happening::Freeze(_, pause) => {
            if let Some(process) = chosen.and_then(Worker::handle) {
                process.freeze();
                tokio::spawn(async move {
                    tokio::time::sleep(pause).await;
                    process.thaw();
                });
            }
        }
        Happening::EndSession(who) => drop(end_session(&site.world.db, who).await),
        Happening::LoseCommit => site.database.swallow("COMMIT", 1),
        Happening::DatabaseAway(pause) => {
            site.database.go_away();
            let database = std::sync::Arc::clone(&site.database);
            tokio::spawn(async move {
                tokio::time::sleep(pause).await;
                database.come_back();
            });
        }
        Happening::Crash => drop(crash(&site.world.db).await),
        Happening::TimePasses(by) => drop(site.time_passes(by).await),
        Happening::Weather(weather) => site.queues.set(weather),
    }
}

/// Ends one session of this site's database.
async fn end_session(db: &PgPool, who: usize) -> Result<()> {
    sqlx::query(
        "select pg_terminate_backend(pid) from pg_stat_activity \
          where datname = current_database() and pid <> pg_backend_pid() \
          order by pid \
         offset $1 % greatest(1, (select count(*) - 1 from pg_stat_activity where datname = current_database())) \
          limit 1",
    )
    .bind(i64::try_from(who)?)
    .execute(db)
    .await?;
    Ok(())
}

/// Kills a server process. PostgreSQL then ends all others and recovers from its log, as after the loss of
/// a host.
async fn crash(db: &PgPool) -> Result<()> {
    let options: PgConnectOptions = (*db.connect_options()).clone();
    let mut session = options.connect().await?;
    let process: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut session).await?;
    let process = Pid::from_raw(process).ok_or("no such process")?;
    Ok(kill_process(process, Signal::KILL)?)
}

fn progress(duration: Duration) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(duration.as_secs());
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} s") {
        bar.set_style(style);
    }
    bar
}
