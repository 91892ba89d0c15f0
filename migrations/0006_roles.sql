create index outbox_event_dead on outbox_event (destination) where dead_reason is not null;
