-- The relay's loop with a publisher that answers at once, the same for every shape: claim behind the
-- cursor, mark, commit. A procedure, so that no client and no network is measured.
create procedure drain(lane text, batch int) language plpgsql as $$
declare
    after_at timestamptz := '-infinity';
    after_sequence bigint := 0;
    events text[]; ats timestamptz[]; sequences bigint[]; rings int[];
begin
    loop
        select array_agg(event_id), array_agg(next_attempt_at), array_agg(sequence), array_agg(ring)
          into events, ats, sequences, rings
          from claim(lane, after_at, after_sequence, batch);
        exit when events is null;
        after_at := ats[cardinality(ats)];
        after_sequence := sequences[cardinality(sequences)];
        perform mark(lane, events, ats, sequences, rings);
        commit;
    end loop;
end $$;
