"""Starting and ending our own background processes.

A process is named by its id *and* the instant it started, so that an id which the system has given to
somebody else in the meantime is never signalled.
"""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from .say import Failed

_children = {}
"""What this run started, by id: a parent has to collect its ended children."""


def ports(remembered_in):
    """Loopback ports to try: the one of last time, whose URLs others may have kept, then free ones.

    Nobody listens on a port when it is yielded; a server that loses the race is started with the next.
    """
    for wanted in (last_port(remembered_in) or 0, 0, 0, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", wanted))
            except OSError:
                continue
            port = probe.getsockname()[1]
        (Path(remembered_in) / "port").write_text(str(port))
        yield port


def last_port(remembered_in):
    """The port of last time; None the first time."""
    file = Path(remembered_in) / "port"
    return int(file.read_text()) if file.exists() else None


def start(command, log, **options):
    """Starts `command` in a session of its own with its output appended to `log`; returns its identity."""
    with open(log, "ab") as out:
        child = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True, **options
        )
    _children[child.pid] = child
    return {"pid": child.pid, "started": started_at(child.pid)}


def started_at(pid):
    """The instant process `pid` started, in the system's own words; None when there is no such process."""
    try:
        # Field 22 of stat(5), counted after the command's closing bracket. A zombie has ended.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except OSError:
        if Path("/proc/self").exists():
            return None
    shown = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = shown.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else started.strip()


def alive(identity):
    """Whether the process we started is still running."""
    return bool(identity) and identity["started"] is not None and started_at(identity["pid"]) == identity["started"]


def end(identity, first_signal=signal.SIGTERM, patience_s=10):
    """Ends the process and what it started: asks first, then kills."""
    if not alive(identity):
        return
    os.kill(identity["pid"], first_signal)
    deadline = time.monotonic() + patience_s
    while alive(identity) and time.monotonic() < deadline:
        _reap(identity["pid"])
        time.sleep(0.05)
    # The group is ours alone: `start` opened a session for it. Its leader may be gone already.
    deadline = time.monotonic() + 2
    while _signal_group(identity["pid"]) and time.monotonic() < deadline:
        _reap(identity["pid"])
        time.sleep(0.02)


def kill_children(parent, variable, value):
    """Kills the children of `parent` that have `variable` set to `value`; returns how many there were."""
    wanted, killed = f"{variable}={value}".encode(), 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if _parent(folder) == parent and wanted in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
                killed += 1
        except OSError:  # it has ended meanwhile, or is not ours
            continue
    return killed


def wait_until(ready, identity, log, what, patience_s=30):
    """Waits until `ready()`; fails with the end of the log when the process ends or time is up."""
    deadline = time.monotonic() + patience_s
    while not ready():
        if not alive(identity) or time.monotonic() > deadline:
            tail = "\n".join(Path(log).read_text(errors="replace").splitlines()[-15:])
            raise Failed(f"{what} did not start; the end of {log}:\n{tail}")
        time.sleep(0.05)


def _parent(folder):
    """The parent of a process that has not ended, by field 4 of stat(5); None for a zombie."""
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[1])


def _signal_group(leader):
    """Kills what is left of a group; whether anything was."""
    try:
        os.killpg(leader, signal.SIGKILL)
        return True
    except (ProcessLookupError, PermissionError):
        return False


def _reap(pid):
    if pid in _children and _children[pid].poll() is not None:
        del _children[pid]
