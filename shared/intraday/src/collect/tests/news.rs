//! News: each text once, whichever feed brings it, and not before it was published.

use super::super::*;
use super::bench::*;
use crate::fixture::Folder;

/// A feed with one item, published at a time of 2018-04-04.
pub(super) fn rss(title: &str, time: &str) -> String {
    format!(
        "<rss version=\"2.0\"><channel><title>f</title><link>https://e.org/</link><description>d</description>\
         <item><title>{title}</title><link>https://e.org/apple</link>\
         <pubDate>Wed, 04 Apr 2018 {time}:30 +0000</pubDate></item></channel></rss>"
    )
}

fn atom(title: &str) -> String {
    format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>f</title><id>f</id><entry><id>urn:1</id>\
         <title>{title}</title><link href=\"https://e.org/apple?utm_source=x\"/>\
         <published>2018-04-04T13:29:30Z</published></entry></feed>"
    )
}

#[sqlx::test(migrations = "../../migrations")]
async fn item_is_committed_with_its_artifact_job_and_event_outside_the_session_too(db: PgPool) {
    let bench = Bench::new(&db);
    bench.news.write("f.xml", &rss("Apple beats", "02:00"));

    let report = bench.at("03:00:00").await;

    assert_eq!((report.items.new, report.jobs), (1, 1));
    let expected =
        Counts { news_jobs: 1, events: 1, revisions: 1, artifacts: 1, objects: 1, ..Counts::default() };
    assert_eq!(bench.counts().await, expected);
    let artifact =
        sqlx::query_scalar!(r#"select artifact_key as "key!" from job"#).fetch_one(&db).await.unwrap();
    assert!(artifact.starts_with("artifacts/news/"), "{artifact}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn same_item_in_two_feeds_is_one_job(db: PgPool) {
    let bench = Bench::new(&db);
    bench.news.write("a.xml", &rss("Apple beats", "13:29"));
    bench.news.write("b.atom", &atom("Apple beats"));

    bench.at("13:30:00").await;

    let counts = bench.counts().await;
    assert_eq!((counts.news_jobs, counts.revisions, counts.objects), (1, 1, 1));
}

#[sqlx::test(migrations = "../../migrations")]
async fn seen_again_it_leaves_no_row_and_no_object(db: PgPool) {
    let bench = Bench::new(&db);
    bench.news.write("a.xml", &rss("Apple beats", "13:29"));
    bench.at("13:30:00").await;
    let before = bench.counts().await;
    bench.news.write("0.atom", &atom("Apple beats"));

    let report = bench.at("13:30:10").await;

    assert_eq!(report.items, report::Items { known: 1, ..report::Items::default() });
    assert_eq!(bench.counts().await, before);
}

#[sqlx::test(migrations = "../../migrations")]
async fn headline_edited_later_is_a_new_revision_and_a_new_job(db: PgPool) {
    let bench = Bench::new(&db);
    bench.news.write("a.xml", &rss("Apple beats", "13:29"));
    bench.at("13:30:00").await;
    bench.news.write("a.xml", &rss("Apple beats, raises guidance", "13:29"));

    bench.at("13:30:10").await;

    let counts = bench.counts().await;
    assert_eq!((counts.news_jobs, counts.revisions), (2, 2));
    let items = sqlx::query_scalar!(r#"select count(distinct item_id) as "items!" from news_revision"#);
    assert_eq!(items.fetch_one(&db).await.unwrap(), 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn item_is_not_visible_before_it_was_published(db: PgPool) {
    let bench = Bench::new(&db);
    bench.news.write("a.xml", &rss("Apple beats", "13:31"));

    let early = bench.at("13:31:00").await;
    assert_eq!(early.items, report::Items { not_yet_published: 1, ..report::Items::default() });

    let replayed = bench.range("13:30:00", "13:31:00", false).await;
    assert_eq!(replayed.items.new, 1, "published at 13:31:30, inside the window that ends at 13:32");
}

#[sqlx::test(migrations = "../../migrations")]
async fn item_without_a_date_counts_as_published_when_first_seen(db: PgPool) {
    let bench = Bench::new(&db);
    bench.news.write("a.xml", &rss("Apple beats", "13:31").replace("pubDate", "unknown"));

    bench.at("13:31:00").await;

    let published =
        sqlx::query_scalar!("select published_at from news_revision").fetch_one(&db).await.unwrap();
    assert_eq!(published, instant("13:31:00"));
}

#[sqlx::test(migrations = "../../migrations")]
async fn of_two_collectors_of_one_feed_one_makes_the_job(db: PgPool) {
    let bench = Bench::new(&db);
    bench.news.write("a.xml", &rss("Apple beats", "13:29"));
    let other = Bench::new(&db);
    other.news.write("a.xml", &rss("Apple beats", "13:29"));
    let other_is_faster = Box::pin(async move { drop(other.at("13:30:00").await) });
    *bench.collector.artifacts.meanwhile.lock().unwrap() = Some(other_is_faster);

    let report = bench.at("13:30:00").await;

    assert_eq!(report.items, report::Items { known: 1, ..report::Items::default() });
    let counts = bench.counts().await;
    assert_eq!((counts.news_jobs, counts.events, counts.artifacts), (1, 1, 1));
}

#[sqlx::test(migrations = "../../migrations")]
async fn feed_that_is_no_feed_costs_no_other(db: PgPool) {
    let news = Folder::with(&[("a.xml", "<html>gone</html>"), ("b.xml", &rss("Apple beats", "13:29"))]);
    let bench = Bench::over(&db, Folder::with(&[]), news, "");

    let report = bench.at("13:30:00").await;

    assert_eq!(report.items.new, 1);
    assert!(messages(&report)[0].starts_with("news/a.xml: is not an RSS"), "{:?}", messages(&report));
}
