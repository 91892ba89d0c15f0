-- The protocol: windows, artifacts, jobs, outbox events, lanes.
--
-- PostgreSQL is the only authority. A row here decides what may happen next; an SQS message is only a
-- hint that it may be worth looking. Every constraint has a name, and the schema refuses rows that no
-- correct program could write.

create table artifact (
    key        text        not null,
    state      text        not null,
    sha256     text,
    size_bytes bigint,
    owner      text        not null,
    created_at timestamptz not null default clock_timestamp(),

    constraint artifact_pkey primary key (key),
    constraint artifact_key_fits_s3 check (octet_length(key) between 1 and 1024),
    constraint artifact_state_is_known check (state in ('REFERENCED', 'RECLAIMED')),
    constraint artifact_referenced_is_measured
        check (state <> 'REFERENCED' or (sha256 is not null and size_bytes is not null)),
    constraint artifact_sha256_is_hex check (sha256 ~ '^[0-9a-f]{64}$'),
    constraint artifact_size_not_negative check (size_bytes >= 0)
);
comment on table artifact is
    'Every object the product ever wrote to S3. The primary key decides between a late writer and the sweeper: whoever inserts first wins, and a key is never used twice.';
comment on column artifact.state is 'REFERENCED: a committed row needs the object. RECLAIMED: the sweeper took it; the row stays for ever.';
comment on column artifact.owner is 'What it belongs to, for people: window, news, ….';

create table collection_window (
    dataset        text        not null,
    window_start   timestamptz not null,
    generation     integer     not null default 1,
    session_date   date        not null,
    content_digest text        not null,
    bar_count      integer     not null,
    artifact_key   text,
    backfilled     boolean     not null default false,
    collected_at   timestamptz not null default clock_timestamp(),
    corrected_at   timestamptz,

    constraint collection_window_pkey primary key (dataset, window_start),
    constraint collection_window_on_the_minute check (date_trunc('minute', window_start, 'UTC') = window_start),
    constraint collection_window_generation_positive check (generation >= 1),
    constraint collection_window_digest_is_hex check (content_digest ~ '^[0-9a-f]{64}$'),
    constraint collection_window_bars_have_artifact check ((bar_count > 0) = (artifact_key is not null)),
    constraint collection_window_bar_count_not_negative check (bar_count >= 0),
    constraint collection_window_corrected_after_first check ((generation > 1) = (corrected_at is not null)),
    constraint collection_window_artifact_fkey foreign key (artifact_key) references artifact (key)
);
comment on table collection_window is
    'One closed minute of one dataset. A correction raises its generation; jobs of an older generation are stale.';
comment on column collection_window.session_date is 'The trading day the window belongs to, in the dataset''s time zone.';
comment on column collection_window.content_digest is
    'SHA-256 of the canonical bars, not of the bytes fetched: collecting the same content again is a no-op.';
comment on column collection_window.artifact_key is 'The raw input of this generation; null for a minute without data.';
comment on column collection_window.backfilled is 'Stored after the fact; no job was made for it.';
comment on column collection_window.collected_at is 'When the first generation was committed.';

-- The windows of one trading day, in order.
create index collection_window_by_session on collection_window (dataset, session_date, window_start);

create table job (
    job_id             text        not null,
    job_type           text        not null,
    destination        text        not null,
    status             text        not null default 'PENDING',
    attempt_count      integer     not null default 0,
    max_attempts       integer     not null,
    next_attempt_at    timestamptz not null default now(),
    claimed_by         uuid,
    lease_until        timestamptz,
    redrive_generation integer     not null default 0,
    payload            jsonb       not null,
    artifact_key       text,
    dataset            text,
    window_start       timestamptz,
    window_generation  integer,
    max_age            interval,
    dead_reason        text,
    last_error         text,
    last_requeued_at   timestamptz,
    requeue_count      integer     not null default 0,
    dismissed_at       timestamptz,
    trace_header       text,
    created_at         timestamptz not null default now(),
    enqueued_at        timestamptz not null default now(),
    finished_at        timestamptz,

    constraint job_pkey primary key (job_id),
    constraint job_id_is_hex check (job_id ~ '^[0-9a-f]{64}$'),
    constraint job_type_not_empty check (job_type <> ''),
    constraint job_destination_not_empty check (destination <> ''),
    constraint job_status_is_known check (status in ('PENDING', 'CLAIMED', 'RETRY', 'SUCCEEDED', 'DEAD')),
    constraint job_claimed_has_holder check ((status = 'CLAIMED') = (claimed_by is not null)),
    constraint job_claimed_has_lease check ((status = 'CLAIMED') = (lease_until is not null)),
    constraint job_dead_has_reason check ((status = 'DEAD') = (dead_reason is not null)),
    constraint job_terminal_is_finished check ((status in ('SUCCEEDED', 'DEAD')) = (finished_at is not null)),
    constraint job_dismissed_is_dead check (dismissed_at is null or status = 'DEAD'),
    constraint job_attempts_in_range check (attempt_count between 0 and max_attempts),
    constraint job_claimed_was_tried check (status not in ('CLAIMED', 'SUCCEEDED') or attempt_count > 0),
    constraint job_max_attempts_positive check (max_attempts >= 1),
    constraint job_generation_not_negative check (redrive_generation >= 0),
    constraint job_requeue_count_not_negative check (requeue_count >= 0),
    constraint job_max_age_positive check (max_age > interval '0'),
    constraint job_window_is_whole
        check (num_nulls(dataset, window_start, window_generation) in (0, 3)),
    constraint job_artifact_fkey foreign key (artifact_key) references artifact (key)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
comment on table job is
    'One logical unit of work, and the only place that says what state it is in. The space a page leaves free keeps claims and completions HOT.';
comment on column job.job_id is 'SHA-256 of the canonical JSON of the identity fields: the same work has the same id everywhere.';
comment on column job.attempt_count is 'Claims in this redrive generation. It rises at the claim, so a payload that kills its process is bounded too.';
comment on column job.claimed_by is 'Unique to one claim, never the name of a sandbox.';
comment on column job.lease_until is 'Until then only the holder of the claim may move the job. The database''s clock.';
comment on column job.redrive_generation is 'Raised by each redrive; a message of an older generation is superseded.';
comment on column job.payload is 'References only. The logical content: the same id with another payload is a bug of the caller.';
comment on column job.artifact_key is 'The object the work reads. A reference, not content.';
comment on column job.window_generation is 'The window generation the work was made for; behind the window''s own, the job is STALE. Null, like dataset and window_start, when not tied to a window.';
comment on column job.max_age is 'Older than this since enqueued_at, the job is EXPIRED. Null: never.';
comment on column job.enqueued_at is 'Creation, or the last redrive.';

-- Unfinished work, oldest first: the reconciler and the age gauge. Not over status alone, so that it
-- stays small whatever the history; a claim keeps the row in it unchanged.
create index job_unfinished on job (destination, enqueued_at) where finished_at is null;

create table outbox_event (
    event_id           text        not null,
    job_id             text        not null,
    event_type         text        not null,
    destination        text        not null,
    redrive_generation integer     not null,
    body               text        not null,
    ordering_key       text,
    trace_header       text,
    status             text        not null default 'NEW',
    attempt_count      integer     not null default 0,
    next_attempt_at    timestamptz not null default now(),
    sequence           bigint      not null generated always as identity,
    ring               integer     not null default 0,
    dead_reason        text,
    last_error         text,
    created_at         timestamptz not null default now(),
    published_at       timestamptz,

    constraint outbox_event_pkey primary key (event_id),
    constraint outbox_event_job_fkey foreign key (job_id) references job (job_id),
    constraint outbox_event_id_is_derived
        check (event_id = event_type || ':' || job_id || ':' || redrive_generation),
    constraint outbox_event_status_is_known check (status in ('NEW', 'PUBLISHED', 'DEAD')),
    constraint outbox_event_published_has_time check ((status = 'PUBLISHED') = (published_at is not null)),
    constraint outbox_event_dead_has_reason check ((status = 'DEAD') = (dead_reason is not null)),
    constraint outbox_event_attempts_not_negative check (attempt_count >= 0),
    constraint outbox_event_ring_not_negative check (ring >= 0)
) with (fillfactor = 45, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
comment on table outbox_event is
    'The intent to wake somebody up for a job, written in the job''s own transaction and moved NEW to PUBLISHED or DEAD by the relay. Its shape was measured: docs/decisions/0001-outbox-shape.md.';
comment on column outbox_event.event_id is 'Derived from type, job and generation, so that the primary key also means: once per generation.';
comment on column outbox_event.body is 'The message exactly as it is sent. Kept for ever when the event is DEAD.';
comment on column outbox_event.sequence is 'For order only. Commit order differs, so nothing may remember a high-water mark of it.';
comment on column outbox_event.ring is 'Rises with each return to NEW; a stale relay''s mark compares it and so can not swallow a later ring.';

-- What a lane has to send, in the order it sends. Small whatever the history.
create index outbox_event_new on outbox_event (destination, next_attempt_at, sequence) where status = 'NEW';

-- The events of one job, and the foreign key's check when the janitor removes it. A hash, because every
-- mark writes each index again and a job id is 64 bytes long.
create index outbox_event_job on outbox_event using hash (job_id);

create table lane (
    destination   text        not null,
    lease_token   uuid,
    lease_until   timestamptz,
    failure_count integer     not null default 0,
    retry_at      timestamptz,
    last_error    text,

    constraint lane_pkey primary key (destination),
    constraint lane_lease_is_whole check ((lease_token is null) = (lease_until is null)),
    constraint lane_failure_count_not_negative check (failure_count >= 0),
    constraint lane_backs_off_after_failure check ((failure_count = 0) = (retry_at is null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);
comment on table lane is 'One destination: who drains it now, and how healthy it is.';
comment on column lane.retry_at is 'Trouble of the whole lane: nothing is sent before this instant, then one probe batch.';
