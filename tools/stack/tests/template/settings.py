"""Which variables a function reads, from the source of its settings."""

import re

from tools.stack.paths import PROJECT

CONSUMER = [("settings.rs", "ConsumerSettings")]
SETTINGS = {
    "CollectorFunction": [("settings.rs", "CollectorSettings")],
    "RelayFunction": [("settings.rs", "RelaySettings"), ("relay/settings.rs", "Settings")],
    "DeadLetterFunction": [("settings/repair.rs", "DeadLetterSettings")],
    "ReconcilerFunction": [("settings/repair.rs", "ReconcilerSettings")],
    "OperatorFunction": [("settings.rs", "Database")],
    "MigratorFunction": [("settings.rs", "Database")],
}
"""The types whose `from_env` a function calls, by the file under shared/runtime/src."""


def read_by(function):
    """The variables that a function reads and has no default for, those read by the shared reader included."""
    shared = _functions_of("settings.rs", "Reader")
    types = SETTINGS.get(function, CONSUMER)
    return set().union(*(_variables_of(body, shared) for where in types for body in _functions_of(*where).values()))


def _functions_of(file, type_name):
    """The bodies of a type's functions by name, from its source without tests."""
    code = (PROJECT / "shared/runtime/src" / file).read_text().partition("#[cfg(test)]")[0]
    blocks = re.split(r"^impl(?:<.*>)? (?=\w+)", code, flags=re.MULTILINE)[1:]
    body = "".join(block for block in blocks if re.match(rf"{type_name}\b", block))
    names_and_bodies = re.split(r"\bfn (\w+)", body)[1:]
    return dict(zip(names_and_bodies[::2], names_and_bodies[1::2]))


def _variables_of(body, shared):
    """The variables that a function reads, itself or by calling the reader's functions."""
    direct = re.findall(r'\.(?:text|parsed|positive)\("([A-Z_]+)"|optional\("(TAILCAR_CONFIG)"', body)
    called = set(re.findall(r"\b(?:reader|self)\.(\w+)\(", body)) & shared.keys()
    deeper = (_variables_of(shared[name], {**shared, name: ""}) for name in called)
    return {name for pair in direct for name in pair if name}.union(*deeper)
