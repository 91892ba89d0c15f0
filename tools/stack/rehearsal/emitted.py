"""What a run of the stack emitted: the EMF lines in its functions' logs, read as CloudWatch reads them."""

import json
from dataclasses import dataclass

from tools.stack import aws


@dataclass(frozen=True)
class Point:
    """One value of one metric in one exact dimension set."""

    namespace: str
    metric: str
    dimensions: frozenset
    value: float

    @property
    def series(self):
        """What an alarm must name to see it."""
        return self.namespace, self.metric, self.dimensions


def points(now):
    """Every point that any function emitted so far, in the order of each function's log."""
    for function in now["functions"].values():
        for line in aws.follow(now, function, still_wanted=lambda: False):
            yield from of_line(line)


def of_line(line):
    """The points of one log line; none when it is no EMF, which CloudWatch takes as a root-level object only."""
    try:
        document = json.loads(line)
    except ValueError:
        return
    if not isinstance(document, dict) or "_aws" not in document:
        return
    for directive in document["_aws"]["CloudWatchMetrics"]:
        for names in directive["Dimensions"]:
            dimensions = frozenset((name, document[name]) for name in names)
            for metric in directive["Metrics"]:
                values = document[metric["Name"]]
                for value in values if isinstance(values, list) else [values]:
                    yield Point(directive["Namespace"], metric["Name"], dimensions, value)


def series_of(alarm):
    """What a deployed alarm watches."""
    dimensions = frozenset((part["Name"], part["Value"]) for part in alarm["Dimensions"])
    return alarm["Namespace"], alarm["MetricName"], dimensions
