-- Roles: each component may do to each table what its statements do, and nothing else.
--
-- A role belongs to the whole server and outlives this database; its rights belong to this database. Nobody
-- logs in as a role: docs/decisions/0002-database-logins.md says who does. Whoever owns the tables (the
-- migrator's user) keeps every right. A right on columns names what is written; where a statement only locks
-- a row, one column stands for that.

-- Dead events for people and gauges, whatever the history.
create index outbox_event_dead on outbox_event (destination) where dead_reason is not null;

do $$
declare
    role text;
begin
    foreach role in array array['tailcar_collector', 'tailcar_relay', 'tailcar_consumer', 'tailcar_dead_letter',
                                'tailcar_reconciler', 'tailcar_sweeper', 'tailcar_janitor', 'tailcar_monitor',
                                'tailcar_operator'] loop
        continue when exists (select from pg_roles where rolname = role);
        begin
            execute format('create role %I nologin', role);
        exception
            -- The migration of another database makes the same one at this moment.
            when duplicate_object or unique_violation then null;
        end;
    end loop;
end
$$;

-- The relay's only way to a job: with an event that can never be sent, as the statement of the store says.
create function tailcar_bury(event_ids text[], rings integer[], reasons text[], errors text[], job_reason text)
    returns table (dead bigint, deferred bigint, jobs bigint)
    language sql volatile security definer
as $$
    with unsendable as (
        select *
          from unnest(event_ids, rings, reasons, errors) as u (event_id, ring, reason, error)
    ), locked as (
        select job_id, redrive_generation, lease_until,
               status = 'CLAIMED' and lease_until > now() as is_held
          from job
         where job_id in (select event.job_id from outbox_event as event join unsendable using (event_id))
         order by job_id
           for update
    ), judged as (
        select unsendable.*, locked.job_id, locked.redrive_generation, locked.lease_until,
               locked.is_held and locked.redrive_generation = event.redrive_generation as is_deferred
          from unsendable
          join outbox_event as event using (event_id)
          join locked using (job_id)
    ), moved as (
        update outbox_event as event
           set status = case when is_deferred then 'NEW' else 'DEAD' end,
               dead_reason = case when is_deferred then null else reason end,
               next_attempt_at = case when is_deferred then judged.lease_until else event.next_attempt_at end,
               last_error = error
          from judged
         where event.event_id = judged.event_id
           and event.ring = judged.ring
           and event.published_at is null
           and event.dead_reason is null
        returning event.job_id, event.redrive_generation, event.dead_reason, event.last_error
    ), buried as (
        update job
           set status = 'DEAD',
               dead_reason = job_reason,
               last_error = moved.dead_reason || ': ' || moved.last_error,
               claimed_by = null,
               lease_until = null,
               finished_at = now()
          from moved
         where job.job_id = moved.job_id
           and job.redrive_generation = moved.redrive_generation
           and job.finished_at is null
           and moved.dead_reason is not null
        returning job.job_id
    )
    select count(*) filter (where dead_reason is not null) ,
           count(*) filter (where dead_reason is null) ,
           (select count(*) from buried) 
      from moved
$$;
comment on function tailcar_bury(text[], integer[], text[], text[], text) is
    'Makes NEW events DEAD, each with its job: shared/store/src/outbox/burial.rs. Runs as its owner, so that the relay has no right on jobs.';
do $$
begin
    execute format('alter function tailcar_bury(text[], integer[], text[], text[], text) set search_path = pg_catalog, %I, pg_temp',
                   current_schema());
    -- Functions refuse to start on a schema too old. A database that was migrated by other means has no record.
    if to_regclass('_sqlx_migrations') is not null then
        grant select on _sqlx_migrations
           to tailcar_collector, tailcar_relay, tailcar_consumer, tailcar_dead_letter, tailcar_reconciler,
              tailcar_sweeper, tailcar_janitor, tailcar_monitor, tailcar_operator;
    end if;
end
$$;
revoke execute on function tailcar_bury(text[], integer[], text[], text[], text) from public;

-- Collector: windows, artifacts, bars, news, and the jobs they make.
grant select, insert, update (generation, content_digest, bar_count, artifact_key, corrected_at)
   on collection_window to tailcar_collector;
grant select, insert on artifact, news_revision, trading_session, job, outbox_event to tailcar_collector;
grant select, insert, delete on price_bar to tailcar_collector;

-- Relay: events and lanes. No right on a job.
grant select, update (status, published_at, attempt_count, next_attempt_at, last_error) on outbox_event to tailcar_relay;
grant select, insert, update (lease_token, lease_until, failure_count, retry_at, last_error) on lane to tailcar_relay;
grant execute on function tailcar_bury(text[], integer[], text[], text[], text) to tailcar_relay;

-- Consumers: the states of jobs, follow-up jobs, and the subject's own rows. They never touch an event that
-- is there.
grant select, insert,
      update (status, attempt_count, next_attempt_at, claimed_by, lease_until, dead_reason, last_error, finished_at)
   on job to tailcar_consumer;
grant select, insert on outbox_event, artifact to tailcar_consumer;
grant select, update (backfilled) on collection_window to tailcar_consumer; -- locks the window's row
grant select on price_bar, news_revision to tailcar_consumer;
grant select, insert, update (session_date) on trading_session to tailcar_consumer; -- locks the session's row
grant select, insert, update on price_trigger, news_item, mention_bucket to tailcar_consumer;
grant select, insert, update, delete on explanation to tailcar_consumer;
grant select, insert on news_segment, news_finding to tailcar_consumer;

-- Dead-letter: brings a job back or buries it, with its event; keeps evidence.
grant select, update (status, attempt_count, next_attempt_at, claimed_by, lease_until, dead_reason, last_error, finished_at)
   on job to tailcar_dead_letter;
grant select, update (status, ring, published_at, attempt_count, next_attempt_at, dead_reason, last_error)
   on outbox_event to tailcar_dead_letter;
grant select, insert, update (last_seen_at) on quarantined_message to tailcar_dead_letter;

-- Reconciler: rings again; no state of a job.
grant select, update (last_requeued_at, requeue_count) on job to tailcar_reconciler;
grant select, update (status, ring, published_at, attempt_count, next_attempt_at, last_error)
   on outbox_event to tailcar_reconciler;

-- Sweeper: the artifacts' rows and its own; no event, and of a job only what it still needs.
grant select, insert on artifact to tailcar_sweeper;
grant select (job_id, finished_at, dismissed_at, dead_reason, artifact_key)
   on job to tailcar_sweeper;
grant select, update on installation to tailcar_sweeper;
grant select, insert, update on sweep_lap to tailcar_sweeper;
grant select, insert, update, delete on pending_deletion, artifact_damage to tailcar_sweeper;
grant select, insert on sweep_run to tailcar_sweeper;

-- Janitor: removes what has served its time; a column stands for the lock.
grant select, delete, update (last_error) on job, outbox_event to tailcar_janitor;
grant select, delete, update (report) on sweep_run to tailcar_janitor;

-- Monitor: reads.
grant select on job, outbox_event, lane, collection_window, quarantined_message, sweep_run, artifact_damage
   to tailcar_monitor;

-- Operator: redrives and dismisses, and writes down who did.
grant select,
      update (status, redrive_generation, attempt_count, next_attempt_at, claimed_by, lease_until, dead_reason,
              last_error, last_requeued_at, requeue_count, dismissed_at, enqueued_at, finished_at)
   on job to tailcar_operator;
grant select, insert on outbox_event, operator_action to tailcar_operator;
grant select on artifact, collection_window, lane, quarantined_message to tailcar_operator;
