"""Which variables a function reads, from the source of its settings."""

import re

from tools.stack.paths import PROJECT

CONSUMER = [("settings.rs", "ConsumerSettings")]
SETTINGS = {
    "CollectorFunction": [("settings.rs", "CollectorSettings")],
    "RelayFunction": [("settings.rs", "RelaySettings"), ("relay/settings.rs", "Settings")],
    "NewsConsumerFunction": CONSUMER,
    "PriceConsumerFunction": CONSUMER,
    "ExplainConsumerFunction": CONSUMER,
    "DeadLetterFunction": [("settings/repair.rs", "DeadLetterSettings")],
    "ReconcilerFunction": [("settings/repair.rs", "ReconcilerSettings")],
    "SweeperFunction": [("settings/sweep.rs", "SweeperSettings")],
    "JanitorFunction": [("settings/sweep.rs", "JanitorSettings")],
    "MonitorFunction": [("settings/repair.rs", "MonitorSettings")],
    "OperatorFunction": [("settings/database.rs", "Database")],
    "MigratorFunction": [("settings/repair.rs", "MigratorSettings")],
}
"""The types whose `from_env` a function calls, by the file under shared/runtime/src."""


def read_by(function):
    """The variables that a function reads and has no default for, those read by the shared reader included."""
    shared = {**_functions_of("settings.rs", "Reader"), **_functions_of("settings/database.rs", "Reader")}
    shared |= _free_functions("settings/sweep.rs")
    bodies = [body for where in SETTINGS[function] for body in _functions_of(*where).values()]
    assert bodies, f"the settings of {function} are not where they were"
    return set().union(*(_variables_of(body, shared) for body in bodies))


def _functions_of(file, type_name):
    """The bodies of a type's functions by name, from its source without tests."""
    code = (PROJECT / "shared/runtime/src" / file).read_text().partition("#[cfg(test)]")[0]
    blocks = re.split(r"^impl(?:<.*>)? (?=\w+)", code, flags=re.MULTILINE)[1:]
    body = "".join(block for block in blocks if re.match(rf"{type_name}\b", block))
    names_and_bodies = re.split(r"\bfn (\w+)", body)[1:]
    return dict(zip(names_and_bodies[::2], names_and_bodies[1::2]))


def _free_functions(file):
    """The bodies of functions that belong to no type, by name."""
    code = (PROJECT / "shared/runtime/src" / file).read_text().partition("#[cfg(test)]")[0]
    return dict(re.findall(r"^fn (\w+)(.*?)^}", code, flags=re.MULTILINE | re.DOTALL))


def _variables_of(body, shared):
    """The variables that a function reads, itself or by calling the reader's functions."""
    direct = re.findall(r'\.(?:text|parsed|positive|seconds)\("([A-Z_]+)"|optional\("(TAILCAR_CONFIG)"', body)
    called = set(re.findall(r"\b(?:(?:reader|self)\.)?(\w+)\(", body)) & shared.keys()
    deeper = (_variables_of(shared[name], {**shared, name: ""}) for name in called)
    return {name for pair in direct for name in pair if name}.union(*deeper)
