"""What template.yaml becomes on AWS: translated by SAM, with its parameters' defaults and mappings filled in.

Runs in the tools' virtual environment. `sam validate --lint` sees the template before its translation
and is blind to mistakes in what SAM makes of an event (a queue's visibility shorter than its function's
timeout, say), so the translation is linted too, and its relations are tested in tests/test_template.py.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from . import tools
from .paths import HOME, PROJECT, TEMPLATE
from .say import run_logged, step

ANYWHERE = {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}


def check():
    """Lints the template and its translation and tests the relations between its settings."""
    environment = {**os.environ, **ANYWHERE, "PATH": tools.path_first(), "SAM_CLI_TELEMETRY": "0"}
    options = {"cwd": PROJECT, "env": environment}
    with step("sam validate --lint"):
        run_logged([tools.tool("sam"), "validate", "--lint", "--template", TEMPLATE], HOME / "logs/validate.log", **options)
    with tempfile.TemporaryDirectory() as folder, step("cfn-lint on the translated template"):
        file = Path(folder) / "translated.json"
        file.write_text(json.dumps(translated(), indent=2))
        run_logged([tools.tool("cfn-lint"), "--regions", "us-east-1", "--", file], HOME / "logs/cfn-lint.log", **options)
    with step("The template's relations"):
        run_logged([sys.executable, "-m", "unittest", "tools.stack.tests.test_template"], HOME / "logs/relations.log", **options)


def translated(file=TEMPLATE):
    """The CloudFormation template that SAM makes of ours, or of another one."""
    from samtranslator.translator.transform import transform
    from samtranslator.yaml_helper import yaml_parse

    os.environ.setdefault("AWS_DEFAULT_REGION", ANYWHERE["AWS_REGION"])
    source = yaml_parse(file.read_text())
    source["Globals"]["Function"]["CodeUri"] = "s3://bucket/key"  # what `sam package` would put there
    return transform(source, {}, _NoManagedPolicies())


def filled_in(node, template, parameters):
    """`node` with references to parameters and mappings replaced by their values; others stay as they are."""
    if isinstance(node, list):
        return [filled_in(part, template, parameters) for part in node]
    if not isinstance(node, dict):
        return node
    if set(node) == {"Ref"} and node["Ref"] in template["Parameters"]:
        declared = template["Parameters"][node["Ref"]]
        return parameters.get(node["Ref"], declared.get("Default"))
    if set(node) == {"Fn::FindInMap"}:
        mapping, first, second = filled_in(node["Fn::FindInMap"], template, parameters)
        return template["Mappings"][mapping][first][second]
    return {name: filled_in(part, template, parameters) for name, part in node.items()}


class _NoManagedPolicies:
    """The functions' roles are written out, so SAM has no managed policy to look up."""

    def load(self):
        return {}
