#!/usr/bin/env python3
"""Compare four physical shapes of the outbox: enqueue, drain, and what a claim reads in bad weather.

    tools/outbox-shape/measure.py postgres://postgres@127.0.0.1:5432/ [--rounds 3] [--history 1000000]

Needs psql and pgbench, and a server nobody else uses. It creates and drops the database `outbox_shape`. The
shapes are wide.sql (the migration as it is), draft.sql, narrow.sql and hot.sql beside this file; drain.sql is
the loop they share. Rates say nothing on a server with fsync off; buffers and WAL bytes do.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).parent
MIGRATION = HERE.parent.parent / "migrations" / "0001_protocol.sql"
SHAPES = ("wide", "draft", "narrow", "hot")
BATCH = 1000
CLAIM = 100


class Server:
    """One database of the server under test."""

    def __init__(self, url):
        self.base = url.rstrip("/")
        self.url = f"{self.base}/outbox_shape"

    def admin(self, sql):
        return run("psql", "-XqAt", "-v", "ON_ERROR_STOP=1", f"{self.base}/postgres", "-c", sql)

    def sql(self, *statements):
        commands = [part for statement in statements for part in ("-c", statement)]
        return run("psql", "-XqAt", "-v", "ON_ERROR_STOP=1", self.url, *commands)

    def recreate(self, shape):
        self.admin("drop database if exists outbox_shape with (force)")
        self.admin("create database outbox_shape")
        files = [part for path in (MIGRATION, HERE / f"{shape}.sql", HERE / "drain.sql") for part in ("-f", str(path))]
        run("psql", "-Xq", "-v", "ON_ERROR_STOP=1", self.url, *files)

    def wal(self):
        return int(self.sql("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))

    def buffers(self, query):
        """Shared buffers one execution of `query` touches, and its milliseconds."""
        plan = json.loads(self.sql(f"explain (analyze, buffers, format json) {query}"))[0]
        node = plan["Plan"]
        return node["Shared Hit Blocks"] + node["Shared Read Blocks"], plan["Execution Time"]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout.strip()


def enqueue(server, clients, per_statement, seconds):
    """Events per second and WAL bytes per event of `clients` writers."""
    server.sql("checkpoint")
    before = server.wal()
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(f"\\set n random(1, 2000000000)\nselect enqueue('news', :n * 1000::bigint, {per_statement});\n")
        script.flush()
        run("pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", str(seconds), "-f", script.name, server.url)
    events = int(server.sql("select count(*) from job"))
    return events / seconds, (server.wal() - before) / events


def drain(server, events):
    """Events per second, WAL bytes per event and the HOT share of draining `events`."""
    server.sql(f"select enqueue('news', g * 1000000::bigint, 10000) from generate_series(1, {events // 10000}) g",
               "vacuum analyze", "checkpoint")
    before, started = server.wal(), time.monotonic()
    server.sql(f"call drain('news', {BATCH})")
    took, wal = time.monotonic() - started, server.wal() - before
    published = int(server.sql("select count(*) from event_state where status = 'PUBLISHED'"))
    assert published == events, f"{published} of {events} published"
    time.sleep(1.5)  # the statistics of the finished session arrive on their own
    hot = server.sql("select coalesce(round(100.0 * sum(n_tup_hot_upd) / nullif(sum(n_tup_upd), 0)), 0) from pg_stat_user_tables where relname = 'outbox_event'")
    return events / took, wal / events, int(hot)


def weather(server, shape, history, backoff):
    """What one claim of CLAIM events reads: {condition: (buffers, milliseconds)}."""
    step = 100000
    server.sql(f"select enqueue('history', g * 1000000::bigint, {step}) from generate_series(1, {history // step}) g",
               f"call drain('history', 10000)",
               f"select enqueue('broken', (100000 + g) * 1000000::bigint, {step}) from generate_series(1, {backoff // step}) g",
               "call postpone('broken')", "vacuum analyze")
    # Statistics are now as they are in an idle outbox: nothing NEW is due anywhere.
    first = f"select * from claim('news', '-infinity', 0, {CLAIM})"
    seen = {}
    server.sql("select enqueue('news', 900000000000, 50000)")
    seen["first claim, statistics of an idle outbox"] = server.buffers(first)
    mark = (f"select mark('news', array_agg(event_id), array_agg(next_attempt_at), array_agg(sequence), array_agg(ring)) from claim('news', '-infinity', 0, {BATCH})")
    seen[f"claim and mark {BATCH}, same statistics"] = server.buffers(mark)
    holder = subprocess.Popen(["psql", "-Xq", server.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    holder.stdin.write("begin isolation level repeatable read;\nselect count(*) from lane;\n\\echo held\n")
    holder.stdin.flush()
    while holder.stdout.readline().strip() != "held":
        pass
    server.sql("call drain('news', 1000)")
    server.sql("select enqueue('news', 910000000000, 1000)")
    seen["old snapshot, 50,000 published since, full scan"] = server.buffers(first)
    cursor = server.sql(f"select next_attempt_at || '|' || sequence from claim('news', '-infinity', 0, 1)").split("|")
    seen["same, behind the cursor"] = server.buffers(f"select * from claim('news', '{cursor[0]}', {cursor[1]}, {CLAIM})")
    seen["lane with everything in back-off"] = server.buffers(f"select * from claim('broken', '-infinity', 0, {CLAIM})")
    holder.stdin.close()
    holder.wait()
    server.sql("call drain('news', 1000)", "vacuum")
    server.sql("select enqueue('history', 920000000000, 1000)")
    seen["busy lane with all the history, full scan"] = server.buffers(f"select * from claim('history', '-infinity', 0, {CLAIM})")
    return seen


def spread(values):
    return f"{min(values):,.0f} / {statistics.median(values):,.0f} / {max(values):,.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="server, without a database")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4, help="of each enqueue run")
    parser.add_argument("--events", type=int, default=100000, help="of each drain")
    parser.add_argument("--history", type=int, default=1000000)
    parser.add_argument("--backoff", type=int, default=200000)
    options = parser.parse_args()
    server = Server(options.url)
    print("server:", server.admin("select version()").split(",")[0], "fsync", server.admin("show fsync"),
          "shared_buffers", server.admin("show shared_buffers"))

    rates = {shape: {} for shape in SHAPES}
    for _ in range(options.rounds):
        for shape in SHAPES:
            note = lambda name, value: rates[shape].setdefault(name, []).append(value)
            for name, clients, size in (("enqueue 1, 8 writers", 8, 1), ("enqueue 1000, 1 writer", 1, 1000)):
                server.recreate(shape)
                rate, wal = enqueue(server, clients, size, options.seconds)
                note(f"{name}: events/s", rate)
                note(f"{name}: WAL bytes/event", wal)
            server.recreate(shape)
            rate, wal, hot = drain(server, options.events)
            note(f"drain by {BATCH}: events/s", rate)
            note(f"drain by {BATCH}: WAL bytes/event", wal)
            note(f"drain by {BATCH}: HOT %", hot)
    table({shape: {name: spread(values) for name, values in rates[shape].items()} for shape in SHAPES})

    print(f"\nOne claim of {CLAIM}: buffers (ms); {options.history:,} published, {options.backoff:,} in back-off")
    read = {}
    for shape in SHAPES:
        server.recreate(shape)
        seen = weather(server, shape, options.history, options.backoff)
        read[shape] = {name: f"{buffers:,} ({took:.1f})" for name, (buffers, took) in seen.items()}
    table(read)
    server.admin("drop database outbox_shape with (force)")


def table(cells):
    print(f"| | {' | '.join(SHAPES)} |\n|---|{'---|' * len(SHAPES)}")
    for name in cells[SHAPES[0]]:
        print(f"| {name} | {' | '.join(cells[shape][name] for shape in SHAPES)} |")


if __name__ == "__main__":
    main()
