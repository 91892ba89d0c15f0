//! Plays a trading session through the deployed functions, kills what it can while they run, and counts
//! whether anything was lost or applied twice.
//!
//! It drives the stack only from outside: it invokes functions, sends messages, kills processes and
//! reads the database. It never writes to the product's tables, except that it clears a database that a
//! rehearsal filled.

mod arguments;
mod aws;
mod change;
mod chaos;
mod deliveries;
mod generate;
mod lambda;
mod logs;
mod progress;
mod rehearsal;
mod relay;
mod replay;
mod report;
mod sandbox;
mod settle;
mod stack;
mod state;
mod verdict;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use arguments::Arguments;
use change::Snapshot;
use chaos::{Chaos, Toll};
use deliveries::Deliveries;
use rehearsal::Rehearsal;
use replay::Replayed;
use report::Report;
use runtime::telemetry::Chain;
use settle::Settled;
use stack::Stack;
use state::{Found, Wanted};
use verdict::Evidence;

type Error = Box<dyn std::error::Error>;

/// A promise was broken.
const BROKEN: u8 = 1;
/// Nothing could be tried.
const NOT_TRIED: u8 = 2;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match rehearse(&Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(BROKEN),
        Err(err) => {
            eprintln!("demo: {}", Chain(err.as_ref()));
            ExitCode::from(NOT_TRIED)
        }
    }
}

/// Whether every promise was kept.
async fn rehearse(arguments: &Arguments) -> Result<bool, Error> {
    let stack = Stack::from_environment().await?;
    let rehearsal = Rehearsal::prepare(arguments)?;
    rehearsal.choices.iter().for_each(|choice| println!("{choice}"));

    let wanted = if arguments.data.is_some() { Wanted::Kept } else { Wanted::Empty };
    let found = state::prepare(&stack, &rehearsal.dataset, &rehearsal.config, wanted).await?;
    if found == Found::Earlier {
        println!("The database holds an earlier run of this data; what it left is kept.");
    }

    let before = Snapshot::take(&stack).await?;
    let played = play(&stack, &rehearsal, arguments).await?;
    let change = before.until(&Snapshot::take(&stack).await?);
    let verdict = evidence(&stack, &rehearsal, &played).await?.judge();

    print!("{}", Report::read(&stack, &rehearsal.dataset).await?);
    print!("\n{}{}{}\n{change}\n{verdict}", played.toll, played.deliveries, played.replayed);
    Ok(verdict.holds() && (change.is_none() || !arguments.expect_no_change))
}

/// How a replay went.
struct Played {
    replayed: Replayed,
    settled: Settled,
    toll: Toll,
    deliveries: Deliveries,
}

async fn play(stack: &Stack, rehearsal: &Rehearsal, arguments: &Arguments) -> Result<Played, Error> {
    let began = store::window::database_now(&stack.db).await?;
    let schedule = relay::Schedule::start(stack.aws.clone(), stack.function("relay")?.to_owned());
    let mut chaos = if arguments.no_chaos {
        Chaos::none(stack)
    } else {
        Chaos::in_the_middle(stack, rehearsal.windows.len())
    };
    let replayed = replay::run(stack, rehearsal, &mut chaos).await?;
    let settled = settle::wait(stack, Duration::from_secs(arguments.settle)).await?;
    let runs = schedule.end().await?;
    let toll = chaos.toll();
    let deliveries = Deliveries::count(stack, &runs, toll.duplicates, began).await?;
    Ok(Played { replayed, settled, toll, deliveries })
}

async fn evidence(stack: &Stack, rehearsal: &Rehearsal, played: &Played) -> Result<Evidence, Error> {
    let windows = store::audit::windows(&stack.db).await?;
    let ours = windows.iter().find(|windows| windows.dataset == rehearsal.dataset);
    let symbols = intraday::audit::symbols(&stack.db, &rehearsal.dataset).await?;
    let implied = intraday::audit::implied_jobs(&stack.db, &rehearsal.dataset).await?;
    Ok(Evidence {
        balance: played.settled.balance,
        absent: store::audit::absent(&stack.db, &implied).await?.len(),
        messages: played.settled.messages,
        dead_letters: settle::messages(stack, stack.deployed.dead_letter_queues.values()).await?,
        miscounted: intraday::audit::miscounted(&stack.db).await?,
        windows: (i64::try_from(rehearsal.windows.len())?, ours.map_or(0, |ours| ours.windows)),
        triggers: (
            rehearsal.expected.triggers.clone(),
            intraday::audit::triggers(&stack.db, &rehearsal.dataset).await?,
        ),
        bars: (
            rehearsal.expected.bars,
            ours.map_or(0, |ours| ours.bars),
            symbols.iter().map(|symbol| symbol.bars).sum(),
        ),
        in_time: played.replayed.in_time(),
    })
}
