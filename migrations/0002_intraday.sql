-- The first tenant's own tables: bars, news, triggers, explanations.
--
-- Every effect has a natural key of its own, a second line of defence that outlives the job row.

create table trading_session (
    dataset      text not null,
    session_date date not null,

    constraint trading_session_pkey primary key (dataset, session_date)
);
comment on table trading_session is
    'One row per dataset and trading day. Whoever computes its triggers holds the row''s lock.';

create table price_bar (
    dataset      text        not null,
    symbol       text        not null,
    window_start timestamptz not null,
    open         numeric     not null,
    high         numeric     not null,
    low          numeric     not null,
    close        numeric     not null,
    volume       numeric     not null,

    constraint price_bar_pkey primary key (dataset, window_start, symbol),
    constraint price_bar_window_fkey
        foreign key (dataset, window_start) references collection_window (dataset, window_start),
    constraint price_bar_symbol_not_empty check (symbol <> ''),
    constraint price_bar_prices_positive check (low > 0),
    constraint price_bar_low_is_lowest check (low <= open and low <= close),
    constraint price_bar_high_is_highest check (high >= open and high >= close),
    constraint price_bar_volume_not_negative check (volume >= 0)
);
comment on table price_bar is 'The canonical bars of the window''s current generation, exactly as the source wrote the digits.';

create table news_revision (
    item_id      text        not null,
    revision     text        not null,
    dataset      text        not null,
    feed         text        not null,
    title        text        not null,
    link         text,
    published_at timestamptz not null,
    artifact_key text        not null,
    sequence     bigint      not null generated always as identity,
    collected_at timestamptz not null default clock_timestamp(),

    constraint news_revision_pkey primary key (item_id, revision),
    constraint news_revision_item_is_hex check (item_id ~ '^[0-9a-f]{64}$'),
    constraint news_revision_is_hex check (revision ~ '^[0-9a-f]{64}$'),
    constraint news_revision_artifact_fkey foreign key (artifact_key) references artifact (key)
);
comment on table news_revision is 'One text of one news item, as collected; written in the transaction that makes its job.';
comment on column news_revision.item_id is 'Feed-independent: the same item in two feeds is one item.';
comment on column news_revision.revision is 'Digest of the text. An edit by the publisher is a new revision.';
comment on column news_revision.published_at is 'As the feed says; the collection time where it says nothing.';

-- The news of some hours, whatever the history.
create index news_revision_by_publication on news_revision (published_at);

create table news_item (
    item_id      text        not null,
    revision     text        not null,
    sequence     bigint      not null,
    title        text        not null,
    link         text,
    published_at timestamptz not null,
    extracted_at timestamptz not null default clock_timestamp(),

    constraint news_item_pkey primary key (item_id),
    constraint news_item_revision_fkey foreign key (item_id, revision) references news_revision (item_id, revision)
);
comment on table news_item is 'The newest extracted revision of each item; only it counts in the statistics.';
comment on column news_item.sequence is 'Of the revision, so that a late extraction of an older text never replaces a newer one.';

create table news_segment (
    item_id       text    not null,
    revision      text    not null,
    segment_index integer not null,
    body          text    not null,

    constraint news_segment_pkey primary key (item_id, revision, segment_index),
    constraint news_segment_revision_fkey
        foreign key (item_id, revision) references news_revision (item_id, revision),
    constraint news_segment_index_not_negative check (segment_index >= 0)
);
comment on table news_segment is 'A passage of one revision, small enough to be read on its own.';

create table news_finding (
    item_id       text    not null,
    revision      text    not null,
    segment_index integer not null,
    finding_index integer not null,
    symbol        text    not null,
    event_kind    text    not null,
    confidence    numeric not null,
    matched       text    not null,

    constraint news_finding_pkey primary key (item_id, revision, segment_index, finding_index),
    constraint news_finding_segment_fkey foreign key (item_id, revision, segment_index)
        references news_segment (item_id, revision, segment_index),
    constraint news_finding_index_not_negative check (finding_index >= 0),
    constraint news_finding_confidence_in_range check (confidence between 0 and 1)
);
comment on table news_finding is 'What a segment says about a symbol.';
comment on column news_finding.matched is 'The words the finding rests on.';
create index news_finding_by_symbol on news_finding (symbol, item_id, revision);

create table mention_bucket (
    symbol       text        not null,
    bucket_start timestamptz not null,
    mentions     integer     not null,

    constraint mention_bucket_pkey primary key (symbol, bucket_start),
    constraint mention_bucket_mentions_not_negative check (mentions >= 0)
);
comment on table mention_bucket is
    'Items that mention a symbol, by hour of publication. Counts each item once, by its newest extracted revision.';

create table price_trigger (
    dataset                 text        not null,
    symbol                  text        not null,
    rule                    text        not null,
    direction               text        not null,
    window_start            timestamptz not null,
    session_date            date        not null,
    revision                integer     not null default 1,
    reference_window        timestamptz not null,
    reference_close         numeric     not null,
    close                   numeric     not null,
    move                    numeric     not null,
    cause_window_start      timestamptz not null,
    cause_window_generation integer     not null,
    withdrawn_at            timestamptz,
    created_at              timestamptz not null default clock_timestamp(),

    constraint price_trigger_pkey primary key (dataset, symbol, rule, direction, window_start),
    constraint price_trigger_rule_is_known check (rule in ('THIRTY_MINUTES', 'SESSION_OPEN')),
    constraint price_trigger_direction_is_known check (direction in ('UP', 'DOWN')),
    constraint price_trigger_direction_matches_move check ((direction = 'UP') = (move > 0)),
    constraint price_trigger_revision_positive check (revision >= 1),
    constraint price_trigger_reference_is_earlier check (reference_window < window_start),
    constraint price_trigger_prices_positive check (reference_close > 0 and close > 0),
    constraint price_trigger_session_fkey
        foreign key (dataset, session_date) references trading_session (dataset, session_date)
);
comment on table price_trigger is
    'A move worth explaining: a pure function of the committed bars. A row that no longer follows from them is withdrawn, never deleted.';
comment on column price_trigger.revision is 'Rises whenever the trigger is replaced or comes back; an explain job belongs to one revision.';
comment on column price_trigger.cause_window_start is 'The window whose job wrote this revision; its explain job is tied to it.';
create index price_trigger_by_session on price_trigger (dataset, session_date, window_start);

create table explanation (
    dataset          text        not null,
    symbol           text        not null,
    rule             text        not null,
    direction        text        not null,
    window_start     timestamptz not null,
    trigger_revision integer     not null,
    verdict          text        not null,
    body             text        not null,
    evidence         jsonb       not null,
    written_at       timestamptz not null default clock_timestamp(),

    constraint explanation_pkey primary key (dataset, symbol, rule, direction, window_start),
    constraint explanation_trigger_fkey foreign key (dataset, symbol, rule, direction, window_start)
        references price_trigger (dataset, symbol, rule, direction, window_start),
    constraint explanation_verdict_is_known check (verdict in ('NEWS', 'MARKET_MOVE', 'NO_CAUSE_FOUND'))
);
comment on table explanation is
    'Why a trigger may have happened, one per trigger; removed when its trigger is withdrawn or replaced.';
comment on column explanation.body is 'Readable text that cites its evidence, or says plainly that no cause was found.';
