"""Follows a page of documentation to the letter, in a copy of the project that is removed afterwards.

A block of `sh` is run, a block of `text` is what the one before it must have printed, and any other block is
the content of the file that the line before it names. The copy shares the project's build folder and
tools, so only what the page writes has to be built, and the project's own crates once more.
"""

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .paths import HOME, PROJECT, VENV
from .say import Failed, say, step

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w./-]+)`:\n+$")
PATIENCE_S = 1800
"""For one block; the longest is the first build on two cores."""


@dataclass(frozen=True)
class Block:
    """One fenced block of a page, and the file it is the content of, if it is one."""

    language: str
    text: str
    file: str | None


def blocks(page):
    """The fenced blocks of a page, in order."""
    found = []
    for match in FENCE.finditer(page):
        named = FILE.search(page[: match.start()])
        language, text = match.groups()
        if language == "mermaid":  # a picture
            continue
        if language not in ("sh", "text") and not named:
            raise Failed(f"no line names the file of the {language} block that begins with {text.splitlines()[0]!r}")
        found.append(Block(language, text, named[1] if named else None))
    return found


def walk(page):
    """Follows `page`; fails at the first step that does not end as it says."""
    steps = blocks(Path(page).read_text())
    folder = Path(tempfile.mkdtemp(prefix="tailcar-walk-"))
    folder.chmod(0o755)  # PostgreSQL may have to run as another user
    try:
        _copy(folder)
        _follow(steps, folder)
    finally:
        subprocess.call(["python3", "-m", "tools.stack", "down"], cwd=folder, env=_environment())
        shutil.rmtree(folder, ignore_errors=True)


def _follow(steps, folder):
    printed = ""
    for block in steps:
        if block.language == "sh":
            with step(block.text.strip().splitlines()[0][:80]):
                printed = _run(block.text, folder)
        elif block.language == "text":
            if printed != block.text:
                raise Failed(f"the page says\n{block.text}and the commands before it said\n{printed}")
        else:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text)
            say(f"  {block.file} is written")


def _run(script, folder):
    command = ["bash", "-euo", "pipefail", "-c", script]
    try:
        ended = subprocess.run(
            command, cwd=folder, env=_environment(), stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise Failed(f"this did not end in {PATIENCE_S} s:\n{script}") from late
    if ended.returncode != 0:
        raise Failed(f"this ended with {ended.returncode}:\n{script}\n{ended.stdout[-4000:]}")
    return ended.stdout


def _environment():
    build = os.environ.get("CARGO_TARGET_DIR", str(PROJECT / "target"))
    return {**os.environ, "CARGO_TARGET_DIR": build, "PYTHONPATH": ""}


def _copy(folder):
    """The project's files without what is built, and the tools by a link."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (PROJECT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, folder / name)
    (folder / HOME.name).mkdir()
    (folder / HOME.name / VENV.name).symlink_to(VENV)
