"""Checks every statement of the workspace against a real database, without sqlx-cli.

With `SQLX_OFFLINE=false` the `query!` macros ask the database about each statement and, with
`SQLX_OFFLINE_DIR`, write the answer to `query-<sha256 of the text>.json`. The macros only run when a
crate is compiled, so the sources are made to look changed for one build; afterwards they get their old
times back, and the next build finds nothing to do.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from . import migrations, pgwire
from .paths import MIGRATIONS, PROJECT
from .say import Failed, say, step

COMMITTED = PROJECT / ".sqlx"
CHECK = ["cargo", "check", "--workspace", "--all-targets", "--quiet"]
CLIPPY = ["cargo", "clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]


def rewrite(port, environment):
    """Makes `.sqlx/`, and the digest in template.yaml, what the statements and the migrations say now."""
    migrations.write()
    with _described(port, environment, CHECK) as fresh:
        COMMITTED.mkdir(exist_ok=True)
        for old in COMMITTED.glob("query-*.json"):
            old.unlink()
        for new in fresh.glob("query-*.json"):
            shutil.copy(new, COMMITTED)
    say(f"  .sqlx/ holds {len(list(COMMITTED.glob('query-*.json')))} statements")


def check(port, environment):
    """Fails when `.sqlx/` is not what the statements and the migrations say now. Runs clippy in the same build."""
    with _described(port, environment, CLIPPY) as fresh:
        faults = differences(COMMITTED, fresh)
    if faults:
        raise Failed("prepared statements are out of date; run `make prepare`\n" + "\n".join(faults))


def differences(committed, fresh):
    """What must change in `committed`, statement by statement."""
    old, new = _statements(committed), _statements(fresh)
    return [
        *(f"  missing:  {_first_line(new[name])}" for name in sorted(new.keys() - old.keys())),
        *(f"  unused:   {_first_line(old[name])}" for name in sorted(old.keys() - new.keys())),
        *(f"  changed:  {_first_line(new[name])}" for name in sorted(new.keys() & old.keys()) if new[name] != old[name]),
    ]


@contextmanager
def _described(port, environment, build):
    """A folder with the description of every statement, made by running `build` against a migrated database."""
    database = f"prepare_{os.getpid()}"
    pgwire.execute(port, f"create database {database}")
    try:
        for migration in sorted(MIGRATIONS.glob("*.sql")):
            _apply(port, database, migration)
        with tempfile.TemporaryDirectory(prefix="tailcar-sqlx-") as folder:
            live = {
                "SQLX_OFFLINE": "false",
                "SQLX_OFFLINE_DIR": folder,
                "DATABASE_URL": f"postgres://postgres@127.0.0.1:{port}/{database}",
            }
            with step(f"{' '.join(build[:2])} against a database"), _looking_changed(_sources()):
                if subprocess.call(build, cwd=PROJECT, env={**environment, **live}) != 0:
                    raise Failed(f"`{' '.join(build)}` failed, see above")
            yield Path(folder)
    finally:
        pgwire.execute(port, f"drop database {database} with (force)")


def _apply(port, database, migration):
    try:
        pgwire.execute(port, migration.read_text(), database)
    except pgwire.ServerError as refused:
        raise Failed(f"{migration.relative_to(PROJECT)}: {refused}") from refused


def _sources():
    """The root file of every target of the workspace; Cargo compiles a target again when it is newer."""
    shown = subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--no-deps"], cwd=PROJECT, capture_output=True, check=True
    ).stdout
    packages = json.loads(shown)["packages"]
    return {Path(target["src_path"]) for package in packages for target in package["targets"]}


@contextmanager
def _looking_changed(files):
    """Lets the files look changed for the block. A file that was really edited meanwhile keeps its new time."""
    touched_ns = (int(time.time()) + 1) * 1_000_000_000  # whole: a file system may keep no more
    before = {file: file.stat() for file in files}
    for file, was in before.items():
        os.utime(file, ns=(was.st_atime_ns, touched_ns))
    try:
        yield
    finally:
        for file, was in before.items():
            if file.stat().st_mtime_ns == touched_ns:
                os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))


def _statements(folder):
    return {file.name: json.loads(file.read_text()) for file in Path(folder).glob("query-*.json")}


def _first_line(statement):
    lines = [line.strip() for line in statement["query"].splitlines() if line.strip()]
    return " ".join(lines)[:100]
