-- Sweep and retention: whose bucket it is, how far it was swept, what is still to be deleted, what is
-- damaged, and what each run found.
--
-- The decision itself needs no table of its own: a RECLAIMED row in artifact is it.

create table installation (
    is_only         boolean     not null default true,
    installation_id uuid        not null default gen_random_uuid(),
    bucket          text,
    adopted_at      timestamptz,
    adopted_by      text,
    adopted_why     text,

    constraint installation_pkey primary key (is_only),
    constraint installation_is_single check (is_only),
    constraint installation_adopted_is_whole
        check (num_nulls(bucket, adopted_at, adopted_by, adopted_why) in (0, 4)),
    constraint installation_adopted_by_not_empty check (adopted_by <> ''),
    constraint installation_adopted_why_not_empty check (adopted_why <> '')
);
comment on table installation is
    'Who this database is to its bucket: one row. The bucket''s marker object carries the same id; without it nothing is ever deleted there.';
comment on column installation.installation_id is 'Drawn once. A copy of this database that works on another bucket needs another id: docs/sweeper.md.';
comment on column installation.bucket is 'The bucket whose marker carries the id; null before one was adopted.';

insert into installation default values;

create table sweep_lap (
    lap          text        not null,
    dry_run      boolean     not null,
    step         bigint      not null default 0,
    cursor_key   text collate "C" not null default '',
    until_key    text collate "C",
    started_at   timestamptz,
    swept_from   text collate "C" not null default '',
    checksums    boolean     not null default false,
    requested_by text,
    requested_why text,
    finished_at  timestamptz,

    constraint sweep_lap_pkey primary key (lap, dry_run),
    constraint sweep_lap_is_known check (lap in ('FRESH', 'LATE', 'AUDIT')),
    constraint sweep_lap_step_not_negative check (step >= 0),
    constraint sweep_lap_running_has_start check ((until_key is null) = (started_at is null)),
    constraint sweep_lap_checksums_in_audits check (not checksums or lap = 'AUDIT'),
    constraint sweep_lap_audits_are_requested check (lap <> 'AUDIT' or num_nulls(requested_by, requested_why) = 0)
);
comment on table sweep_lap is
    'How far the bucket was looked at. A dry run has positions of its own, so that switching on begins at the beginning.';
comment on column sweep_lap.lap is
    'FRESH: what has outlived the grace period, once. LATE: the same hours again much later, for uploads that landed late. AUDIT: everything, when asked for.';
comment on column sweep_lap.step is 'Rises with each move. Who moves it compares it, so that a sweeper that was overtaken moves nothing back.';
comment on column sweep_lap.cursor_key is 'Everything up to this key was looked at in this lap; in the order of bytes, as S3 lists.';
comment on column sweep_lap.until_key is 'Where the lap ends, fixed when it starts. Null between laps.';
comment on column sweep_lap.swept_from is 'The swept-through mark: every hour before this one is done for good. The next lap begins here.';
comment on column sweep_lap.finished_at is 'When the newest lap ended.';

create table pending_deletion (
    key           text collate "C" not null,
    etag          text        not null,
    attempt_count integer     not null default 0,
    last_error    text,
    reclaimed_at  timestamptz not null default now(),
    tried_at      timestamptz,

    constraint pending_deletion_pkey primary key (key),
    constraint pending_deletion_artifact_fkey foreign key (key) references artifact (key),
    constraint pending_deletion_attempts_not_negative check (attempt_count >= 0),
    constraint pending_deletion_tried_has_time check ((attempt_count = 0) = (tried_at is null))
);
comment on table pending_deletion is
    'Objects whose RECLAIMED row is committed and whose deletion S3 has not confirmed. Written with that row, removed with the confirmation; each run tries what is left.';
comment on column pending_deletion.etag is 'The object as it was listed; another one under the same key is not deleted.';

-- What to try next, longest untried first.
create index pending_deletion_next on pending_deletion (tried_at nulls first, key);

create table artifact_damage (
    key           text collate "C" not null,
    kind          text        not null,
    detail        text        not null,
    first_seen_at timestamptz not null default now(),
    last_seen_at  timestamptz not null default now(),

    constraint artifact_damage_pkey primary key (key),
    constraint artifact_damage_artifact_fkey foreign key (key) references artifact (key),
    constraint artifact_damage_is_known check (kind in ('MISSING', 'SIZE', 'CHECKSUM'))
);
comment on table artifact_damage is
    'Artifacts that rows refer to and the bucket does not hold, or not as written. Reported, never mended; a row goes when a later look finds its object whole.';

create table sweep_run (
    run_id        bigint      not null generated always as identity,
    dry_run       boolean     not null,
    listed        bigint      not null,
    orphans       bigint      not null,
    reclaimed     bigint      not null,
    refused       bigint      not null,
    missing       bigint      not null,
    report        jsonb       not null,
    ended_at      timestamptz not null default now(),

    constraint sweep_run_pkey primary key (run_id),
    constraint sweep_run_counts_not_negative check (least(listed, orphans, reclaimed, refused, missing) >= 0)
);
comment on table sweep_run is 'What each run of the sweeper found. The janitor removes old ones.';
comment on column sweep_run.orphans is 'Objects without a row; of them reclaimed were deleted.';
comment on column sweep_run.refused is 'Guards that refused: pages skipped, or the whole run.';
comment on column sweep_run.missing is 'Rows without an object that this run met.';
comment on column sweep_run.report is 'The whole answer of the run.';

-- Jobs the janitor may remove, oldest first. Not over status, which would cost claims their HOT updates.
create index job_retirable on job (finished_at, job_id)
    where finished_at is not null and (dead_reason is null or dead_reason = 'STALE' or dismissed_at is not null);
