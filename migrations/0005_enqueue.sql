-- Enqueue for writers in any language: one call in the writer's own transaction, with the rules of the
-- Rust call (shared/store/src/enqueue.rs): the same ids byte for byte, no-op repeats, the same events.

create function tailcar_job_id(job_type text, identity json) returns text
    language plpgsql immutable strict parallel safe
    set search_path = pg_catalog, pg_temp
as $$
declare
    canonical text;
    fault     text;
begin
    if job_type = '' then
        raise exception 'job_type is empty' using errcode = 'invalid_parameter_value';
    end if;
    if json_typeof(identity) <> 'object' then
        raise exception 'identity is %, not an object of texts and whole numbers', json_typeof(identity)
            using errcode = 'invalid_parameter_value';
    end if;

    select min(case
               when field.key = 'job_type' then 'identity names job_type; it is the first field by itself'
               when field.times > 1 then format('identity has the field %s twice', to_json(field.key))
               else format('the identity field %s is neither text nor a whole number of 64 bits', to_json(field.key))
           end)
      into fault
      from (select each.key, each.value, count(*) over (partition by each.key) as times
              from json_each(identity) as each) as field
     where field.key = 'job_type' or field.times > 1
        or case json_typeof(field.value)
               when 'string' then false
               -- As Rust writes an i64: no sign of zero, no fraction, no exponent.
               when 'number' then field.value::text !~ '^(0|-?[1-9][0-9]{0,18})$'
                               or field.value::text::numeric not between -9223372036854775808 and 9223372036854775807
               else true
           end;
    if fault is not null then
        raise exception '%', fault using errcode = 'invalid_parameter_value';
    end if;

    -- to_json writes text exactly as serde_json does; a test holds them together.
    select '{"job_type":' || to_json(job_type)
           || coalesce(string_agg(',' || to_json(field.key) || ':'
                                  || case json_typeof(field.value)
                                         when 'string' then to_json(field.value #>> '{}')::text
                                         else field.value::text
                                     end, '' order by field.position), '')
           || '}'
      into canonical
      from json_each(identity) with ordinality as field (key, value, position);
    return encode(sha256(convert_to(canonical, 'UTF8')), 'hex');
end
$$;
comment on function tailcar_job_id(text, json) is
    'The id of the job of this type and identity: SHA-256 of canonical JSON, the job type first, then the fields in the order they are written. json and not jsonb, which would lose that order.';

create function tailcar_enqueue_fault(jobs json) returns text
    language sql immutable
    set search_path = pg_catalog, pg_temp
as $$
    select case
           when jobs is null or json_typeof(jobs) <> 'array' then 'jobs is not a JSON array of jobs'
           else (
    select format('jobs[%s]: %s', asked.position - 1, found.fault)
      from json_array_elements(jobs) with ordinality as asked (job, position)
     cross join lateral (
        select 'is not an object' as fault
         where json_typeof(asked.job) <> 'object'
        union all
        select format('%s is no field of a job', to_json(key))
          from json_object_keys(case json_typeof(asked.job) when 'object' then asked.job else '{}' end) as key
         where key not in ('job_type', 'destination', 'identity', 'payload', 'artifact_key', 'window',
                           'max_attempts', 'max_age_seconds', 'ordering_key', 'trace_header')
        union all
        select name || ' is missing, empty or not text'
          from unnest(array['job_type', 'destination']) as name
         where coalesce(json_typeof(asked.job -> name), '') <> 'string' or asked.job ->> name = ''
        union all
        select name || ' is missing or not an object'
          from unnest(array['identity', 'payload']) as name
         where coalesce(json_typeof(asked.job -> name), '') <> 'object'
        union all
        select 'payload is longer than 64 KiB; store the data and refer to them'
         where octet_length((asked.job -> 'payload')::text) > 65536
        union all
        select name || ' is not text'
          from unnest(array['artifact_key', 'ordering_key', 'trace_header']) as name
         where json_typeof(asked.job -> name) not in ('string', 'null')
        union all
        select name || ' is not a whole number between 1 and 999999999'
          from unnest(array['max_attempts', 'max_age_seconds']) as name
         where json_typeof(asked.job -> name) <> 'null' and (asked.job -> name)::text !~ '^[1-9][0-9]{0,8}$'
        union all
        select 'window is not {"dataset": text, "start": text with an offset, "generation": whole number}'
         where json_typeof(asked.job -> 'window') <> 'null'
           and (json_typeof(asked.job -> 'window') <> 'object'
                or coalesce(asked.job -> 'window' ->> 'dataset', '') = ''
                or coalesce(asked.job -> 'window' ->> 'start', '') !~ '(Z|[+-][0-9]{2}:?[0-9]{2})$'
                or coalesce(asked.job -> 'window' ->> 'generation', '') !~ '^[1-9][0-9]{0,8}$')
     ) as found
     order by asked.position
     limit 1)
           end
$$;
comment on function tailcar_enqueue_fault(json) is
    'What is wrong with the first job that tailcar_enqueue would refuse, by its place and field; null when nothing is.';

create function tailcar_enqueue_rows(jobs json)
    returns table (job_id text, job_type text, destination text, payload jsonb, dataset text,
                   window_start timestamptz, window_generation integer, artifact_key text,
                   max_attempts integer, max_age interval, trace_header text, ordering_key text, place bigint)
    language sql stable
as $$
    select tailcar_job_id(job ->> 'job_type', job -> 'identity'),
           job ->> 'job_type',
           job ->> 'destination',
           (job -> 'payload')::jsonb,
           job -> 'window' ->> 'dataset',
           (job -> 'window' ->> 'start')::timestamptz,
           (job -> 'window' ->> 'generation')::integer,
           job ->> 'artifact_key',
           coalesce((job ->> 'max_attempts')::integer, 8),
           make_interval(secs => (job ->> 'max_age_seconds')::double precision),
           job ->> 'trace_header',
           job ->> 'ordering_key',
           place
      from json_array_elements(jobs) with ordinality as asked (job, place)
$$;
comment on function tailcar_enqueue_rows(json) is 'The jobs of a call of tailcar_enqueue as rows, in their order.';

create function tailcar_enqueue(jobs json, report_conflicts boolean default false)
    returns table (job_id text, outcome text)
    language plpgsql volatile security definer
as $$
#variable_conflict use_column
declare
    fault    text := tailcar_enqueue_fault(jobs);
    created  bigint[];
    conflict record;
begin
    if fault is not null then
        raise exception '%', fault using errcode = 'invalid_parameter_value';
    end if;

    -- tailcar_enqueue::insert
    with asked as (
        select * from tailcar_enqueue_rows(jobs)
    ), inserted as (
        insert into job (job_id, job_type, destination, payload, dataset, window_start,
                         window_generation, artifact_key, max_attempts, max_age, trace_header)
        select job_id, job_type, destination, payload, dataset, window_start,
               window_generation, artifact_key, max_attempts, max_age, trace_header
          from asked
         order by job_id, place
            on conflict (job_id) do nothing
        returning job_id
    ), fresh as (
        select distinct on (asked.job_id) asked.*, job_type || ':' || asked.job_id || ':0' as event_id
          from inserted
          join asked using (job_id)
         order by asked.job_id, asked.place
    ), woken as (
        insert into outbox_event (event_id, job_id, event_type, destination, redrive_generation, body,
                                  ordering_key, trace_header)
        select event_id, job_id, job_type, destination, 0,
               '{"version":1,"event_id":' || to_json(event_id) || ',"event_type":' || to_json(job_type)
               || ',"job_id":"' || job_id || '","redrive_generation":0}',
               ordering_key, trace_header
          from fresh
         order by job_id
            on conflict (event_id) do nothing
    )
    select coalesce(array_agg(place), '{}') into created from fresh;

    -- A statement of its own: the one above can not see the rows it met.
    for conflict in
        select asked.job_id, asked.place, job.job_id is not null
               and (asked.job_type, asked.destination, asked.payload,
                    asked.dataset, asked.window_start, asked.window_generation)
                   is distinct from
                   (job.job_type, job.destination, job.payload,
                    job.dataset, job.window_start, job.window_generation) as differs
          from tailcar_enqueue_rows(jobs) as asked
          left join job on job.job_id = asked.job_id
         order by asked.place
    loop
        if conflict.differs and not report_conflicts then
            raise exception 'jobs[%]: job % is there with other content', conflict.place - 1, conflict.job_id
                using errcode = 'unique_violation',
                      hint = 'The same identity must always stand for the same job type, destination, payload and window.';
        end if;
        job_id := conflict.job_id;
        outcome := case when conflict.differs then 'CONFLICT'
                        when conflict.place = any (created) then 'CREATED'
                        else 'KNOWN'
                   end;
        return next;
    end loop;
end
$$;
comment on function tailcar_enqueue(json, boolean) is
    'Enqueues jobs with their events in the caller''s transaction and says of each, in their order: CREATED, KNOWN (the same job was there; nothing was done) or, with report_conflicts, CONFLICT. Without it a conflict is an error and rolls the transaction back. docs/extending.md has the fields.';

-- Whoever may execute it needs no right on a table: it runs as its owner, through whatever it finds in this schema alone.
do $$
begin
    execute format('alter function tailcar_enqueue(json, boolean) set search_path = pg_catalog, %I, pg_temp', current_schema());
end
$$;
revoke execute on function tailcar_enqueue(json, boolean) from public;
