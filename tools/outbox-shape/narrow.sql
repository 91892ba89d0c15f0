-- Shape "narrow": an event is written once and never updated; what is to be sent stands in a small table
-- beside it and is deleted when sent. A DEAD event keeps a row in a third table.
-- Neither `published_at` nor `ring` has a place that is written at publish time.

drop table outbox_event;
create table outbox_event (
    event_id           text        not null primary key,
    job_id             text        not null references job (job_id),
    event_type         text        not null,
    destination        text        not null,
    redrive_generation integer     not null,
    body               text        not null,
    ordering_key       text,
    trace_header       text,
    created_at         timestamptz not null default now(),
    unique (job_id, redrive_generation, event_type)
);
create table outbox_pending (
    destination     text        not null,
    next_attempt_at timestamptz not null default now(),
    sequence        bigint      not null generated always as identity,
    event_id        text        not null references outbox_event (event_id),
    attempt_count   integer     not null default 0,
    last_error      text,
    primary key (destination, next_attempt_at, sequence)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create table outbox_dead (
    event_id    text not null primary key references outbox_event (event_id),
    dead_reason text not null,
    last_error  text
);

create function enqueue(destination text, first bigint, events int) returns void language sql as $$
    with made as (
        insert into job (job_id, job_type, destination, max_attempts, payload)
        select encode(sha256(n::text::bytea), 'hex'), 'news', enqueue.destination, 8, '{"item_id": "0123456789abcdef"}'
          from generate_series(first, first + events - 1) n
            on conflict do nothing
        returning job_id, job_type, job.destination
    ), written as (
        insert into outbox_event (event_id, job_id, event_type, destination, redrive_generation, body)
        select job_type || ':' || job_id || ':0', job_id, job_type, made.destination, 0,
               '{"version":1,"event_id":"' || job_type || ':' || job_id || ':0","event_type":"news","job_id":"' || job_id || '","redrive_generation":0}'
          from made
        returning outbox_event.event_id, outbox_event.destination
    )
    insert into outbox_pending (destination, event_id) select written.destination, event_id from written
$$;

create function claim(lane text, after_at timestamptz, after_sequence bigint, batch int)
returns table (event_id text, body text, next_attempt_at timestamptz, sequence bigint, ring int) stable language sql as $$
    select event_id, body, due.next_attempt_at, due.sequence, 0
      from (select p.event_id, p.next_attempt_at, p.sequence
              from outbox_pending p
             where p.destination = lane
               and p.next_attempt_at <= now()
               and (p.next_attempt_at, p.sequence) > (after_at, after_sequence)
             order by p.next_attempt_at, p.sequence
             limit batch) due
      join outbox_event using (event_id)
     order by due.next_attempt_at, due.sequence
$$;

create function mark(lane text, events text[], ats timestamptz[], sequences bigint[], rings int[]) returns bigint language sql as $$
    with marked as (
        delete from outbox_pending
         where destination = lane
           and (next_attempt_at, sequence) in (select * from unnest(ats, sequences))
        returning 1
    )
    select count(*) from marked
$$;

create view event_state as
    select e.event_id, e.destination,
           case when p.event_id is not null then 'NEW' when d.event_id is not null then 'DEAD' else 'PUBLISHED' end as status
      from outbox_event e left join outbox_pending p using (event_id) left join outbox_dead d using (event_id);

create procedure postpone(lane text) language sql as $$
    update outbox_pending set next_attempt_at = now() + interval '1 hour' where destination = lane
$$;
