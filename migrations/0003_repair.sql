-- Repair: the evidence of messages nobody can decide, and the record of what operators did.

create table quarantined_message (
    message_id    text        not null,
    queue         text        not null,
    body          text,
    attributes    json        not null,
    receive_count integer,
    reason        text        not null,
    detail        text        not null,
    first_seen_at timestamptz not null default now(),
    last_seen_at  timestamptz not null default now(),

    constraint quarantined_message_pkey primary key (message_id),
    constraint quarantined_message_id_not_empty check (message_id <> ''),
    constraint quarantined_message_reason_is_a_word check (reason ~ '^[A-Z][A-Z0-9_]*$'),
    constraint quarantined_message_receive_count_positive check (receive_count >= 1),
    constraint quarantined_message_seen_in_order check (first_seen_at <= last_seen_at)
);
comment on table quarantined_message is
    'Messages in a dead-letter queue that can be neither run nor deleted, copied here before the queue''s retention eats them. The message itself stays where it is.';
comment on column quarantined_message.queue is 'The ARN of the dead-letter queue it lies in; empty when the record named none.';
comment on column quarantined_message.body is 'As received; null when the record had none.';
comment on column quarantined_message.attributes is
    'The queue''s own attributes ("system", among them SentTimestamp) and the sender''s ("message"), as received. Not jsonb, which refuses some of what a sender can write.';
comment on column quarantined_message.receive_count is 'At first sight, across all queues; null when the record did not say.';
comment on column quarantined_message.reason is 'Why it can not be decided, in one word: NOT_A_MESSAGE, UNKNOWN_JOB, ….';
comment on column quarantined_message.detail is 'The same for people.';
comment on column quarantined_message.last_seen_at is 'It comes back every few hours for as long as it lies in the queue.';

create table operator_action (
    action_id bigint      not null generated always as identity,
    action    text        not null,
    who       text        not null,
    why       text        not null,
    selection jsonb       not null,
    dry_run   boolean     not null,
    result    jsonb       not null,
    acted_at  timestamptz not null default now(),

    constraint operator_action_pkey primary key (action_id),
    constraint operator_action_is_known check (action in ('REDRIVE', 'DISMISS')),
    constraint operator_action_who_not_empty check (who <> ''),
    constraint operator_action_why_not_empty check (why <> '')
);
comment on table operator_action is
    'Who moved which jobs by hand, when and why; written in the transaction that moved them. Never changed.';
comment on column operator_action.selection is 'What was asked for: job ids or a filter, limit, rate.';
comment on column operator_action.dry_run is 'Nothing was moved; the result says what would have been.';
comment on column operator_action.result is 'What came of it, by outcome: job ids.';

-- Dead jobs by age: filters of the operator, gauges. Over dead_reason and not over status, which every
-- claim changes and which would cost claims their HOT updates.
create index job_dead on job (finished_at, job_id) where dead_reason is not null;
