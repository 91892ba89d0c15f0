-- claim::claim
--
-- $1 destination, $2 job ids and $3 their messages' generations, $4 lease, $5 whether a job that was
-- tried before may be claimed, $6 $7 $8 the reasons for which a job is dead.
with asked as (
    select job_id, generation, position,
           row_number() over (partition by job_id, generation order by position) as turn
      from unnest($2::text[], $3::int[]) with ordinality as asked (job_id, generation, position)
), locked as (
    select job_id, status, redrive_generation, attempt_count, max_attempts, next_attempt_at,
           lease_until, enqueued_at + max_age as expires_at,
           dataset, window_start, window_generation
      from job
     where job_id = any($2)
       and destination = $1
     order by job_id
       for no key update skip locked
), answered as (
    select asked.position, asked.job_id,
           case
               -- A job's destination never changes, so the snapshot may say this.
               when job.job_id is null then 'undecidable'
               when locked.job_id is null then 'held'
               when asked.generation > locked.redrive_generation then 'undecidable'
               when asked.generation < locked.redrive_generation then 'superseded'
               when locked.status in ('SUCCEEDED', 'DEAD') then 'settled'
               when locked.status = 'CLAIMED' and locked.lease_until > now() then 'held'
               when locked.status = 'RETRY' and locked.next_attempt_at > now() then 'early'
               when collection_window.generation > locked.window_generation then 'stale'
               when locked.expires_at <= now() then 'expired'
               when locked.attempt_count >= locked.max_attempts then 'exhausted'
               when locked.attempt_count > 0 and not $5 then 'suspect'
               when asked.turn > 1 then 'held'
               else 'won'
           end as answer,
           case locked.status
               when 'CLAIMED' then locked.lease_until - now()
               when 'RETRY' then locked.next_attempt_at - now()
           end as remaining
      from asked
      left join job on job.job_id = asked.job_id and job.destination = $1
      left join locked on locked.job_id = asked.job_id
      left join collection_window
        on collection_window.dataset = locked.dataset
       and collection_window.window_start = locked.window_start
), verdict as (
    select distinct job_id, answer
      from answered
     where answer in ('stale', 'expired', 'exhausted', 'won')
), moved as (
    update job
       set status        = case when answer = 'won' then 'CLAIMED' else 'DEAD' end,
           attempt_count = attempt_count + case when answer = 'won' then 1 else 0 end,
           claimed_by    = case when answer = 'won' then gen_random_uuid() end,
           lease_until   = case when answer = 'won' then now() + $4 end,
           finished_at   = case when answer <> 'won' then now() end,
           dead_reason   = case answer when 'stale' then $6
                                       when 'expired' then $7
                                       when 'exhausted' then $8
                           end
      from verdict
     where job.job_id = verdict.job_id
    returning job.*
)
select answered.answer as "answer!",
       case when answered.answer in ('held', 'early') then
           ceil(extract(epoch from case
               when answered.remaining > interval '0' then answered.remaining
               when moved.lease_until is not null then $4
           end) * 1000)::bigint
       end as "wait_ms",
       moved.claimed_by as "claimed_by?",
       moved.attempt_count as "attempt_count?",
       moved.redrive_generation as "redrive_generation?",
       moved.job_type as "job_type?",
       moved.payload as "payload?",
       moved.artifact_key as "artifact_key?",
       moved.dataset as "dataset?",
       moved.window_start as "window_start?",
       moved.window_generation as "window_generation?",
       moved.max_attempts as "max_attempts?",
       moved.enqueued_at as "enqueued_at?",
       moved.lease_until as "lease_until?",
       moved.trace_header as "trace_header?"
  from answered
  left join moved on moved.job_id = answered.job_id
 order by answered.position
