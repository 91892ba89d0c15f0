"""What is running, remembered in `.tailcar/stack.json`: for the next command, and for tools that use the stack."""

import json
import os

from . import process
from .paths import STATE


def load(path=STATE):
    """The stack's state; empty when there is none."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return {}


def save(state, path=STATE):
    """Writes the state whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(state, indent=2) + "\n")
    os.replace(draft, path)


def running(state):
    """Which of the stack's servers are alive."""
    return {name: process.alive(state.get(name)) for name in ("postgres", "emulator")}
