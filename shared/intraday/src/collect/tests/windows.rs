//! Windows: none is lost, none is made twice, and every change is an honest correction.

use chrono::TimeDelta;
use serde_json::json;

use super::super::*;
use super::bench::*;
use crate::fixture::Folder;

#[sqlx::test(migrations = "../../migrations")]
async fn window_is_committed_with_its_bars_artifact_job_and_event(db: PgPool) {
    let bench = Bench::new(&db);
    bench.bars.write("a.csv", &csv(&["AAPL", "TSLA"], &["13:30"], "164.90"));

    let report = bench.at("13:31:00").await;

    assert_eq!(report.windows.opened, [instant("13:30:00")]);
    assert_eq!((report.bars, report.jobs, report.events), (2, 1, 1));
    let counts = bench.counts().await;
    assert_eq!(
        counts,
        Counts {
            windows: 1,
            bars: 2,
            price_jobs: 1,
            events: 1,
            artifacts: 1,
            objects: 1,
            ..Counts::default()
        }
    );
    let written =
        sqlx::query_scalar!(r#"select close::text as "close!" from price_bar where symbol = 'AAPL'"#);
    assert_eq!(written.fetch_one(&db).await.unwrap(), "164.90");
}

#[sqlx::test(migrations = "../../migrations")]
async fn collecting_again_leaves_no_row_and_no_object(db: PgPool) {
    let bench = Bench::new(&db);
    bench.bars.write("a.csv", &csv(&["AAPL"], &["13:30", "13:31"], "10"));
    bench.range("13:30:00", "13:33:00", false).await;
    let before = bench.counts().await;

    let replayed = bench.range("13:30:00", "13:33:00", false).await;
    let scheduled = bench.at("13:32:30").await;

    assert_eq!(bench.counts().await, before);
    assert_eq!(replayed.windows.unchanged, 4);
    assert_eq!(scheduled.windows.unchanged, 1, "the current one is compared, closed ones are not");
}

#[sqlx::test(migrations = "../../migrations")]
async fn other_content_raises_the_generation_and_makes_a_new_job(db: PgPool) {
    let bench = Bench::new(&db);
    bench.bars.write("a.csv", &csv(&["AAPL", "TSLA"], &["13:30"], "10"));
    bench.at("13:31:00").await;
    bench.bars.write("a.csv", &csv(&["AAPL"], &["13:30"], "11"));

    let report = bench.range("13:30:00", "13:30:00", false).await;

    assert_eq!(report.windows.corrected, [report::Correction { start: instant("13:30:00"), generation: 2 }]);
    let counts = bench.counts().await;
    assert_eq!((counts.windows, counts.bars, counts.price_jobs, counts.events), (1, 1, 2, 2));
}

#[sqlx::test(migrations = "../../migrations")]
async fn window_that_loses_all_its_bars_still_gets_a_job(db: PgPool) {
    let bench = Bench::new(&db);
    bench.bars.write("a.csv", &csv(&["AAPL"], &["13:30", "13:31"], "10"));
    bench.range("13:30:00", "13:31:00", false).await;
    bench.bars.write("a.csv", &csv(&["AAPL"], &["13:31"], "10"));

    bench.range("13:30:00", "13:30:00", false).await;

    let counts = bench.counts().await;
    assert_eq!((counts.bars, counts.price_jobs), (1, 3), "what the bars triggered has to go");
}

#[sqlx::test(migrations = "../../migrations")]
async fn minute_without_data_is_a_window_without_artifact_and_job(db: PgPool) {
    let bench = Bench::new(&db);

    bench.at("13:31:00").await;

    assert_eq!(bench.counts().await, Counts { windows: 1, ..Counts::default() });
}

#[sqlx::test(migrations = "../../migrations")]
async fn bars_that_come_late_correct_the_empty_window(db: PgPool) {
    let bench = Bench::new(&db);
    bench.at("13:31:00").await;
    bench.bars.write("a.csv", &csv(&["AAPL"], &["13:30", "13:31"], "10"));

    let report = bench.at("13:32:00").await;

    assert_eq!(report.windows.opened, [instant("13:31:00")]);
    assert_eq!(report.windows.corrected.len(), 1);
    assert_eq!(bench.generation("13:30:00").await, 2);
    assert_eq!(bench.counts().await.price_jobs, 2);
}

#[sqlx::test(migrations = "../../migrations")]
async fn ten_minutes_away_leave_no_hole(db: PgPool) {
    let bench = Bench::new(&db);
    bench.bars.write("a.csv", &csv(&["AAPL"], &["13:30", "13:35", "13:41"], "10"));
    bench.at("13:31:00").await;

    let report = bench.at("13:42:00").await;

    let minutes: Vec<_> = (31..=41).map(|minute| instant(&format!("13:{minute}:00"))).collect();
    assert_eq!(report.windows.opened, minutes, "oldest first");
    assert_eq!(bench.counts().await.bars, 3);
}

#[sqlx::test(migrations = "../../migrations")]
async fn last_window_is_caught_up_after_the_session(db: PgPool) {
    let bench = Bench::new(&db);
    assert_eq!(bench.at("20:30:00").await.windows.opened.len(), 31, "19:30 to 20:00");
    assert_eq!(bench.at("21:01:00").await.windows.opened.len(), 0, "outside the look-back");
}

#[sqlx::test(migrations = "../../migrations")]
async fn of_two_collectors_at_once_one_commits_and_the_other_finds_the_same(db: PgPool) {
    let (first, second) = (Bench::new(&db), Bench::new(&db));
    let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(2));
    for bench in [&first, &second] {
        bench.bars.write("a.csv", &csv(&["AAPL"], &["13:30"], "10"));
        let barrier = barrier.clone();
        let both_are_here = Box::pin(async move {
            barrier.wait().await;
        });
        *bench.collector.artifacts.meanwhile.lock().unwrap() = Some(both_are_here);
    }

    let (one, other) = futures::join!(first.at("13:31:00"), second.at("13:31:00"));

    assert_eq!(one.windows.opened.len() + other.windows.opened.len(), 1);
    assert_eq!(one.windows.unchanged + other.windows.unchanged, 1);
    let counts = first.counts().await;
    assert_eq!((counts.windows, counts.bars, counts.price_jobs, counts.artifacts), (1, 1, 1, 1));
}

#[sqlx::test(migrations = "../../migrations")]
async fn window_that_moved_while_it_was_collected_is_fetched_again(db: PgPool) {
    let bench = Bench::new(&db);
    bench.bars.write("a.csv", &csv(&["AAPL"], &["13:30"], "10"));
    bench.at("13:31:00").await;
    // We fetch 11; before we commit, another collector corrects the window to 12, the newer truth.
    bench.bars.write("a.csv", &csv(&["AAPL"], &["13:30"], "11"));
    let newer = csv(&["AAPL"], &["13:30"], "12");
    let other = Bench::new(&db);
    other.bars.write("a.csv", &newer);
    let ours = bench.bars.path().join("a.csv");
    let other_is_faster = Box::pin(async move {
        other.range("13:30:00", "13:30:00", false).await;
        std::fs::write(ours, newer).unwrap();
    });
    *bench.collector.artifacts.meanwhile.lock().unwrap() = Some(other_is_faster);

    let report = bench.range("13:30:00", "13:30:00", false).await;

    assert_eq!(report.windows.unchanged, 1, "fetched again, 12 was there already");
    assert_eq!(bench.generation("13:30:00").await, 2);
    let close = sqlx::query_scalar!(r#"select close::text as "close!" from price_bar"#);
    assert_eq!(close.fetch_one(&db).await.unwrap(), "12");
}

#[sqlx::test(migrations = "../../migrations")]
async fn key_that_the_sweeper_took_is_replaced_by_a_new_one(db: PgPool) {
    let bench = Bench::new(&db);
    bench.bars.write("a.csv", &csv(&["AAPL"], &["13:30"], "10"));
    sqlx::query!("insert into artifact (key, state, owner) values ('taken', 'RECLAIMED', 'window')")
        .execute(&db)
        .await
        .unwrap();
    *bench.collector.artifacts.next_key.lock().unwrap() = Some("taken".to_owned());

    let report = bench.at("13:31:00").await;

    assert_eq!(report.windows.opened.len(), 1);
    let counts = bench.counts().await;
    assert_eq!((counts.artifacts, counts.objects), (1, 2));
}

#[sqlx::test(migrations = "../../migrations")]
async fn artifact_that_can_not_be_written_leaves_nothing_and_the_next_run_catches_up(db: PgPool) {
    let bench = Bench::new(&db);
    bench.bars.write("a.csv", &csv(&["AAPL"], &["13:30"], "10"));
    *bench.collector.artifacts.broken.lock().unwrap() = true;

    let failed = bench.ask(json!({ "dataset": "us8", "at": instant("13:31:00") })).await;

    assert!(matches!(failed, Err(Error::Artifact(_))));
    assert_eq!(bench.counts().await, Counts::default());
    *bench.collector.artifacts.broken.lock().unwrap() = false;
    assert_eq!(bench.at("13:32:00").await.windows.opened.len(), 2);
}

const BROKEN_SOURCE: &str =
    "[[datasets.us8.sources.bars]]\nname = \"broken\"\nfolder = \"/no/such/folder\"\n";

#[sqlx::test(migrations = "../../migrations")]
async fn failing_source_stops_no_other_and_is_reported(db: PgPool) {
    let bars = Folder::with(&[("a.csv", &csv(&["AAPL"], &["13:31"], "10"))]);
    let bench = Bench::over(&db, bars, Folder::with(&[]), BROKEN_SOURCE);

    let report = bench.at("13:32:00").await;

    assert_eq!(report.windows.opened, [instant("13:31:00")]);
    assert_eq!(report.windows.postponed, [instant("13:30:00")], "its bars may be in the broken source");
    assert!(messages(&report)[0].starts_with("broken: can not be read"), "{:?}", messages(&report));
}

#[sqlx::test(migrations = "../../migrations")]
async fn failing_source_takes_no_bars_away(db: PgPool) {
    let healthy = Bench::new(&db);
    healthy.bars.write("a.csv", &csv(&["AAPL"], &["13:30"], "10"));
    healthy.at("13:31:00").await;
    let ailing = Bench::over(&db, Folder::with(&[]), Folder::with(&[]), BROKEN_SOURCE);

    let report = ailing.range("13:30:00", "13:30:00", false).await;

    assert_eq!(report.windows.postponed, [instant("13:30:00")]);
    assert_eq!(ailing.counts().await.bars, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn backfill_stores_windows_and_bars_without_jobs_or_news(db: PgPool) {
    let bench = Bench::new(&db);
    bench.bars.write("a.csv", &csv(&["AAPL"], &["13:30", "13:31"], "10"));
    bench.news.write("f.xml", &super::news::rss("Apple beats", "13:30"));

    let report = bench.range("13:30:00", "13:32:00", true).await;

    assert_eq!((report.windows.opened.len(), report.jobs), (3, 0));
    let expected = Counts { windows: 3, bars: 2, artifacts: 2, objects: 2, ..Counts::default() };
    assert_eq!(bench.counts().await, expected);
}

#[sqlx::test(migrations = "../../migrations")]
async fn backfill_reports_a_window_that_differs_and_leaves_it(db: PgPool) {
    let bench = Bench::new(&db);
    bench.bars.write("a.csv", &csv(&["AAPL"], &["13:30", "13:31"], "10"));
    bench.range("13:30:00", "13:31:00", false).await;
    let before = bench.counts().await;
    bench
        .bars
        .write("a.csv", &(csv(&["AAPL"], &["13:30"], "11") + "2018-04-04T13:31:00Z,AAPL,10,10,10,10,1\n"));

    let report = bench.range("13:30:00", "13:31:00", true).await;

    assert_eq!(report.windows.different, [instant("13:30:00")]);
    assert_eq!(report.windows.unchanged, 1);
    assert_eq!(bench.counts().await, before);
}

#[sqlx::test(migrations = "../../migrations")]
async fn backfill_leaves_the_look_back_to_the_schedule(db: PgPool) {
    let clock = store::window::database_now(&db).await.unwrap();
    let bench = Bench::new(&db);
    let mut us8 = bench.collector.config.datasets[0].clone();
    us8.session.first_window = chrono::NaiveTime::MIN;
    us8.session.last_window = chrono::NaiveTime::from_hms_opt(23, 59, 0).unwrap();
    us8.session.holidays.clear();
    us8.session.weekdays = (0..7).map(|day| chrono::Weekday::try_from(day).unwrap()).collect();

    let plan = Plan::backfill(&us8, clock - TimeDelta::minutes(70), clock, clock);

    assert_eq!(plan.too_recent, 61, "60 minutes and the one that runs");
    assert!(plan.windows.iter().all(|start| clock - *start > LOOK_BACK));
}

#[sqlx::test(migrations = "../../migrations")]
async fn range_that_time_runs_out_for_says_where_to_go_on(db: PgPool) {
    let bench = Bench::new(&db);
    let range = json!({ "dataset": "us8", "from": instant("13:30:00"), "to": instant("13:40:00") });
    let request = Request::parse(range).unwrap();

    let report = bench.collector.run(&request, TimeLeft::lasting(Duration::ZERO), None).await.unwrap();

    assert_eq!(report.datasets[0].next, Some(instant("13:30:00")));
    assert_eq!(bench.counts().await, Counts::default());
}

#[sqlx::test(migrations = "../../migrations")]
async fn dataset_that_is_not_configured_is_named(db: PgPool) {
    let error = Bench::new(&db).ask(json!({ "dataset": "us9" })).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no dataset called \"us9\"");
}
