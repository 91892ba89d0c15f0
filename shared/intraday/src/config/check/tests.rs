//! The bundled file is right, and every kind of fault is named with its path, all at once.

use super::*;

const BUNDLED: &str = crate::config::location::BUNDLED;

fn faults_of(text: &str) -> Vec<String> {
    Config::load(text).unwrap_err().0.iter().map(ToString::to_string).collect()
}

/// The faults of the bundled file with `from` replaced.
fn faults_with(from: &str, to: &str) -> Vec<String> {
    assert!(BUNDLED.contains(from), "{from} is not in the bundled file");
    faults_of(&BUNDLED.replacen(from, to, 1))
}

#[test]
fn bundled_file_has_no_fault() {
    let config = Config::load(BUNDLED).unwrap();

    let us8 = config.dataset("us8").unwrap();
    let symbols: Vec<&str> = us8.instruments.iter().map(|instrument| instrument.symbol.as_str()).collect();
    assert_eq!(symbols, ["AAPL", "AMD", "AMZN", "INTC", "MSFT", "NVDA", "SNAP", "TSLA"]);
    assert_eq!(us8.thresholds.thirty_minutes, Decimal::new(1, 2));
    assert_eq!(us8.thresholds.session_open, Decimal::new(4, 2));
    assert_eq!(config.destinations["price"], Destination::default());
    assert_eq!(config.extraction, Extraction::default());
}

#[test]
fn every_fault_is_named_at_once() {
    let text = BUNDLED
        .replace("America/New_York\"", "America/NewYork\"")
        .replace("\"0.01\"", "\"-0.01\"")
        .replace("[destinations.price]", "[destinations.prices]")
        .replace("symbol = \"AMD\"", "symbol = \"aapl\"")
        .replace("\"Wed\"", "\"Wodnesday\"");

    assert_eq!(
        faults_of(&text),
        [
            "datasets.us8.zone: \"America/NewYork\" is not a time zone (an IANA name such as America/New_York)",
            "datasets.us8.session.weekdays[2]: \"Wodnesday\" is not a day of the week such as Mon",
            "datasets.us8.instruments[1].symbol: \"aapl\" is there twice; one text may name one instrument",
            "datasets.us8.thresholds.thirty_minutes: \"-0.01\" is not a decimal above 0, in quotes, such as \"0.01\" for one per cent",
            "destinations.prices: is not a destination; there are news, price, explain",
        ]
    );
}

#[test]
fn unknown_entry_is_refused_wherever_it_stands() {
    assert_eq!(
        faults_with("zone =", "zome = 1\nzone ="),
        ["datasets.us8.zome: is not an entry of this table"]
    );
    assert_eq!(
        faults_with("rehearsal_delay_ms", "rehearsal_delay"),
        ["extraction.rehearsal_delay: is not an entry of this table"]
    );
}

#[test]
fn empty_session_is_refused() {
    assert_eq!(
        faults_with("last_window = \"16:00\"", "last_window = \"09:29\"")[0],
        "datasets.us8.session.last_window: lies before first_window, so the session would be empty"
    );
    assert_eq!(
        faults_with("weekdays = [\"Mon\", \"Tue\", \"Wed\", \"Thu\", \"Fri\"]", "weekdays = []")[0],
        "datasets.us8.session.weekdays: has no day, so there would never be a session"
    );
}

#[test]
fn threshold_of_zero_is_refused() {
    assert!(
        faults_with("\"0.04\"", "\"0\"")[0].starts_with("datasets.us8.thresholds.session_open: \"0\" is not")
    );
}

#[test]
fn number_where_a_text_belongs_is_refused() {
    assert_eq!(
        faults_with("thirty_minutes = \"0.01\"", "thirty_minutes = 0.01")[0],
        "datasets.us8.thresholds.thirty_minutes: is a float; a text is expected"
    );
}

#[test]
fn source_has_exactly_one_place() {
    let expected = "datasets.us8.sources.bars[0].folder: exactly one of folder, s3 and url is expected";
    assert_eq!(faults_with("folder = \"input/bars\"", ""), [expected]);
    assert_eq!(faults_with("folder = \"input/bars\"", "folder = \"a\"\ns3 = \"s3://b/c\""), [expected]);
    assert_eq!(
        faults_with("folder = \"input/bars\"", "url = \"ftp://example.org/x\"")[0],
        "datasets.us8.sources.bars[0].url: \"ftp://example.org/x\" is not an http:// or https:// address"
    );
    assert_eq!(
        faults_with("folder = \"input/bars\"", "s3 = \"bucket/prefix\"")[0],
        "datasets.us8.sources.bars[0].s3: \"bucket/prefix\" is not of the form s3://bucket/prefix"
    );
}

#[test]
fn missing_tables_are_named() {
    assert_eq!(faults_of(""), ["datasets: is missing; a table is expected"]);
    assert_eq!(faults_of("[datasets]"), ["datasets: names no dataset"]);
}

#[test]
fn text_that_is_not_toml_is_named_with_its_line() {
    assert!(faults_of("a = 1\nb = [")[0].contains("line 2"));
}

#[test]
fn dead_letter_policy_is_return_or_dead() {
    let dead =
        BUNDLED.replacen("[destinations.news]", "[destinations.news]\ndead_letter_policy = \"dead\"", 1);
    let config = Config::load(&dead).unwrap();

    assert_eq!(config.destinations["news"].dead_letter_policy, Policy::Dead);
    assert_eq!(config.destinations["price"].dead_letter_policy, Policy::Return);
    assert_eq!(
        faults_with("[destinations.news]", "[destinations.news]\ndead_letter_policy = \"drop\""),
        ["destinations.news.dead_letter_policy: \"drop\" is not \"return\" or \"dead\""]
    );
}
