"""docs/parameters.md, written from the template, so that it names every parameter as it is."""

from . import template
from .paths import PROJECT

PAGE = PROJECT / "docs/parameters.md"

HEAD = """# Parameters

Every parameter of `template.yaml`, in the groups and the order in which CloudFormation's console shows them.
`python3 -m tools.stack parameters` writes this page from the template.
"""


def write():
    """Rewrites the page."""
    PAGE.write_text(page())


def page():
    """What the page has to say."""
    whole = template.translated()
    groups = whole["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    return "\n".join([HEAD, *(_group(group, whole["Parameters"]) for group in groups)])


def _group(group, parameters):
    rows = [_row(name, parameters[name]) for name in group["Parameters"]]
    return "\n".join([f"## {group['Label']['default']}\n", "| parameter | default | |", "|---|---|---|", *rows, ""])


def _row(name, declared):
    default = declared["Default"]
    shown = "empty" if default == "" else f"`{default}`"
    return f"| `{name}` | {shown} | {declared['Description'].strip()}{_allowed(declared)} |"


def _allowed(declared):
    if "AllowedValues" in declared:
        return f" One of {', '.join(map(str, declared['AllowedValues']))}."
    bounds = [f"{word} {declared[key]}" for key, word in (("MinValue", "from"), ("MaxValue", "to")) if key in declared]
    return f" {' '.join(bounds).capitalize()}." if bounds else ""
