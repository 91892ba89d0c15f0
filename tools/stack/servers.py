"""Starting and stopping the two servers together, kept for later or only for one command."""

import os
import shutil
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from . import emulator, postgres, state
from .paths import HOME, STATE
from .say import step

DATABASE = "tailcar"
SERVERS = {"postgres": postgres, "emulator": emulator}


def up(folder=HOME, path=STATE, names=tuple(SERVERS)):
    """Starts those of `names` that are not running yet; returns the state, which is also saved."""
    now = state.load(path)
    alive = state.running(now)
    with ThreadPoolExecutor() as together:
        starts = {name: together.submit(SERVERS[name].start, folder) for name in names if not alive[name]}
        try:
            now.update({name: started.result() for name, started in starts.items()})
        finally:
            # Also when the other one failed: what runs must be known, or nobody could stop it.
            now.update({name: started.result() for name, started in starts.items() if not started.exception()})
            state.save(now, path)
    now["database_url"] = postgres.ensure_database(now["postgres"], DATABASE)
    if now.get("emulator"):
        now["aws"] = emulator.client_environment(now["emulator"])
    state.save(now, path)
    return now


def down(path=STATE):
    """Stops the servers. Their data stay."""
    now = state.load(path)
    for name in reversed(SERVERS):
        SERVERS[name].stop(now.pop(name, None))
    state.save(now, path)


@contextmanager
def temporary(names=tuple(SERVERS)):
    """Servers with nothing in them, gone with all their files at the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="tailcar-run-"))
    folder.chmod(0o755)  # PostgreSQL may have to run as another user
    path = folder / "stack.json"
    for asked in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(asked, _interrupt)
    try:
        with step(f"Starting {' and '.join(names)}"):
            now = up(folder, path, names)
        yield now, path
    finally:
        kept_elsewhere = (state.load(path).get("postgres") or {}).get("folder", folder)
        down(path)
        shutil.rmtree(kept_elsewhere, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def run(command, environment=None):
    """Runs `command` against temporary servers and returns its exit code."""
    with temporary() as (now, path):
        return subprocess.call(command, env={**os.environ, **variables(now, path), **(environment or {})})


def variables(now, path=STATE):
    """The environment of a program that uses the stack."""
    return {**now["aws"], "DATABASE_URL": now["database_url"], "TAILCAR_STACK": str(path)}


def _interrupt(*_):
    raise KeyboardInterrupt
