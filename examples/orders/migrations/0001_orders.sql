-- The example's own tables. Those of the protocol are there before.

create table purchase (
    order_id     text        not null,
    email        text        not null,
    total_cents  bigint      not null,
    callback_url text,
    placed_at    timestamptz not null default now(),

    constraint purchase_pkey primary key (order_id),
    constraint purchase_total_not_negative check (total_cents >= 0)
);
comment on table purchase is 'An order. Whoever inserts one enqueues its receipt in the same transaction.';
comment on column purchase.callback_url is 'Where the shop wants to hear that the receipt is out; null: nowhere.';

create table receipt (
    order_id text        not null,
    job_id   text        not null,
    sent_at  timestamptz not null default now(),

    constraint receipt_pkey primary key (order_id),
    constraint receipt_order_fkey foreign key (order_id) references purchase (order_id)
);
comment on table receipt is 'Orders whose receipt is out; written with the end of the job that sent it.';
comment on column receipt.job_id is 'No foreign key: receipts outlive jobs.';

create table announcement (
    order_id     text        not null,
    job_id       text        not null,
    announced_at timestamptz not null default now(),

    constraint announcement_pkey primary key (order_id),
    constraint announcement_receipt_fkey foreign key (order_id) references receipt (order_id)
);
comment on table announcement is 'Receipts that the shop was told about.';

create table outside_effect (
    idempotency_key text    not null,
    channel         text    not null,
    recipient       text    not null,
    body            text    not null,
    calls           integer not null default 1,

    constraint outside_effect_pkey primary key (idempotency_key)
);
comment on table outside_effect is
    'What the stand-in for the mail provider and for the shop has taken. A real one is somewhere else.';
comment on column outside_effect.calls is 'How often it was asked to: outside effects are at least once, and the key makes them one.';
