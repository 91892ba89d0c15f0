"""Checks that this machine has what cannot be installed for it, and names everything missing at once."""

import re
import shutil
import subprocess

from . import tools
from .say import Failed

CARGO_MIN = (1, 94)


def check():
    """Fails with one message that names all that is missing."""
    missing = [text for text in (_cargo(), _python(), _make(), _compiler()) if text]
    if missing:
        raise Failed("this machine lacks:\n" + "\n".join(f"  - {text}" for text in missing))


def _cargo():
    wanted = "cargo %d.%d or newer" % CARGO_MIN
    if not shutil.which("cargo"):
        return f"{wanted} (https://rustup.rs)"
    shown = subprocess.run(["cargo", "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"cargo (\d+)\.(\d+)", shown)
    if not version or tuple(map(int, version.groups())) < CARGO_MIN:
        return f"{wanted}; found {shown.strip() or 'one that does not run'} (rustup update stable)"
    return None


def _python():
    try:
        tools.python()
    except Failed as failed:
        return f"{str(failed).removeprefix('no ')} (Debian: apt-get install python3-venv)"
    return None


def _make():
    return None if shutil.which("make") else "make (Debian: apt-get install make)"


def _compiler():
    found = any(map(shutil.which, ("cc", "gcc", "clang")))
    return None if found else "a C compiler, for Rust's linker (Debian: apt-get install gcc libc6-dev)"
