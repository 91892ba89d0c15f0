"""What the person at the terminal sees.

On a terminal a running step counts its seconds; into a pipe each step is one line, written when it is
done. Everything goes to stderr: stdout belongs to a command's result.
"""

import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path


class Failed(Exception):
    """Something a person can act on; shown without a stack trace."""


def say(text):
    """Writes one line."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def step(title):
    """Names a step that takes a while, and says how long it took."""
    started = time.monotonic()
    done = threading.Event()
    if sys.stderr.isatty():
        threading.Thread(target=_count, args=(title, started, done), daemon=True).start()
    try:
        yield
    except BaseException:
        done.set()
        say(f"{_line_start()}  {title}: failed after {time.monotonic() - started:.1f} s")
        raise
    done.set()
    say(f"{_line_start()}  {title}: {time.monotonic() - started:.1f} s")


def run_logged(command, log, **options):
    """Runs `command` with its output in the file `log`; on failure shows the last lines and where the rest is."""
    log = Path(log)
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "wb") as out:
        code = subprocess.call(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **options)
    if code != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-25:])
        raise Failed(f"{' '.join(map(str, command[:4]))} … ended with {code}; the whole output is in {log}\n{tail}")


def _count(title, started, done):
    while not done.wait(1):
        print(f"\r  {title} … {time.monotonic() - started:.0f} s", end="", file=sys.stderr, flush=True)


def _line_start():
    return "\r\033[K" if sys.stderr.isatty() else ""
