"""Writes the template of a pipeline of one's own: what every pipeline has, and a block for each destination.

The functions are the binaries of one package of this workspace, by their names: `PIPELINE-relay`,
`PIPELINE-dead-letter`, `PIPELINE-migrator` and, for each destination, `DESTINATION-consumer`; reconciler and operator
are Tailcar's own. What comes out is a beginning: it is edited like any template.
"""

import json
import re
from pathlib import Path

from .paths import PROJECT
from .say import Failed

PARTS = Path(__file__).with_name("templates")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def template(pipeline, destinations):
    """The whole template."""
    _check([pipeline, *destinations])
    if not destinations or len(set(destinations)) < len(destinations):
        raise Failed("name each destination once: python3 -m tools.stack new-template PIPELINE DESTINATION …")
    base = (PARTS / "pipeline.yaml").read_text()
    return _filled(base, {
        "PIPELINE": pipeline,
        "QUEUE_URLS": _mapping(destinations, "Queue"),
        "DEAD_LETTER_URLS": _mapping(destinations, "DeadLetterQueue"),
        "QUEUE_ARNS": _arns(destinations, "Queue"),
        "DEAD_LETTER_ARNS": _arns(destinations, "DeadLetterQueue"),
        "DEAD_LETTER_EVENTS": "".join(_each(destinations, "dead_letter_event.yaml")).rstrip("\n"),
        "DESTINATIONS": "\n".join(block(name) for name in destinations).rstrip("\n"),
        "OUTPUTS": "".join(_each(destinations, "outputs.yaml")).rstrip("\n"),
    })


def block(destination):
    """The block of one destination: its queues, its consumer, and when to wake a person."""
    _check([destination])
    return next(_each([destination], "destination.yaml"))


def logical(name):
    """The name as CloudFormation takes it: `big-orders` is `BigOrders`."""
    return "".join(part.capitalize() for part in name.split("-"))


def _each(destinations, part):
    text = (PARTS / part).read_text()
    return (_filled(text, {"NAME": name, "LOGICAL": logical(name)}) for name in destinations)


def _mapping(destinations, suffix):
    return json.dumps({name: f"${{{logical(name)}{suffix}}}" for name in destinations})


def _arns(destinations, suffix):
    return ", ".join(f"!GetAtt {logical(name)}{suffix}.Arn" for name in destinations)


def _filled(text, values):
    return re.sub(r"@([A-Z_]+)@", lambda found: values[found[1]], text)


def _check(names):
    wrong = [name for name in names if not NAME.fullmatch(name) or len(name) > 30]
    if wrong:
        raise Failed(f"{wrong[0]!r} is no name: lower-case words joined by hyphens, at most 30 characters")


def stack_of(file):
    """The stack that a template is deployed as: the name of its folder."""
    return Path(file).resolve().parent.name if Path(file).resolve().parent != PROJECT else "tailcar"
