-- Shape "draft": the wide table as it was first drafted, with a unique B-tree over job, generation and type
-- beside the primary key, and less free space in each page.

drop index outbox_event_job;
alter table outbox_event drop constraint outbox_event_id_is_derived;
alter table outbox_event add constraint outbox_event_once_per_generation unique (job_id, redrive_generation, event_type);
alter table outbox_event set (fillfactor = 70);

create function enqueue(destination text, first bigint, events int) returns void language sql as $$
    with made as (
        insert into job (job_id, job_type, destination, max_attempts, payload)
        select encode(sha256(n::text::bytea), 'hex'), 'news', enqueue.destination, 8, '{"item_id": "0123456789abcdef"}'
          from generate_series(first, first + events - 1) n
            on conflict do nothing
        returning job_id, job_type, job.destination
    )
    insert into outbox_event (event_id, job_id, event_type, destination, redrive_generation, body)
    select job_type || ':' || job_id || ':0', job_id, job_type, made.destination, 0,
           '{"version":1,"event_id":"' || job_type || ':' || job_id || ':0","event_type":"news","job_id":"' || job_id || '","redrive_generation":0}'
      from made
$$;

create function claim(lane text, after_at timestamptz, after_sequence bigint, batch int)
returns table (event_id text, body text, next_attempt_at timestamptz, sequence bigint, ring int) stable language sql as $$
    select event_id, body, next_attempt_at, sequence, ring
      from outbox_event
     where destination = lane
       and status = 'NEW'
       and next_attempt_at <= now()
       and (next_attempt_at, sequence) > (after_at, after_sequence)
     order by next_attempt_at, sequence
     limit batch
$$;

create function mark(lane text, events text[], ats timestamptz[], sequences bigint[], rings int[]) returns bigint language sql as $$
    with marked as (
        update outbox_event
           set status = 'PUBLISHED', published_at = now()
          from unnest(events, rings) as sent (event_id, ring)
         where outbox_event.event_id = sent.event_id
           and outbox_event.ring = sent.ring
           and outbox_event.published_at is null
           and outbox_event.dead_reason is null
        returning 1
    )
    select count(*) from marked
$$;

create view event_state as select event_id, destination, status from outbox_event;

create procedure postpone(lane text) language sql as $$
    update outbox_event set next_attempt_at = now() + interval '1 hour' where destination = lane and status = 'NEW'
$$;
