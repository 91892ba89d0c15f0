"""What template.yaml becomes on AWS: linted before and after SAM translates it, scanned, and tested.

Runs in the tools' virtual environment. `sam validate --lint` sees the template before its translation
and is blind to mistakes in what SAM makes of an event (a queue's visibility shorter than its function's
timeout, say), so the translation is linted too, and what must hold in it is tested in tests/template/.
"""

import functools
import json
import logging
import os
import sys
import tempfile
from pathlib import Path

from . import tools
from .paths import HOME, PROJECT, TEMPLATE
from .say import run_logged, step

ANYWHERE = {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}


def check():
    """Lints and scans the template and its translation and tests what must hold in it."""
    environment = {**os.environ, **ANYWHERE, "PATH": tools.path_first(), "SAM_CLI_TELEMETRY": "0"}
    options = {"cwd": PROJECT, "env": environment}
    logs = HOME / "logs"
    with step("sam validate --lint"):
        run_logged([tools.tool("sam"), "validate", "--lint", "--template", TEMPLATE], logs / "validate.log", **options)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "translated.json"
        file.write_text(json.dumps(translated(), indent=2))
        with step("cfn-lint on the translated template"):
            run_logged([tools.tool("cfn-lint"), "--regions", "us-east-1", "--", file], logs / "cfn-lint.log", **options)
        checkov = tools.checkov()
        with step("checkov on the translated template"):
            settings = Path(__file__).with_name("checkov.yaml")
            run_logged([checkov, "--config-file", settings, "--file", file], logs / "checkov.log", **options)
    with step("What must hold in it"):
        tests = ["-m", "unittest", "discover", "--start-directory", "tools/stack/tests/template", "--top-level-directory", "."]
        run_logged([sys.executable, *tests], logs / "relations.log", **options)


@functools.cache
def translated(file=TEMPLATE):
    """The CloudFormation template that SAM makes of ours, or of another one."""
    from samtranslator.translator.transform import transform
    from samtranslator.yaml_helper import yaml_parse

    os.environ.setdefault("AWS_DEFAULT_REGION", ANYWHERE["AWS_REGION"])
    logging.getLogger("samtranslator").setLevel(logging.ERROR)
    source = yaml_parse(file.read_text())
    source["Globals"]["Function"]["CodeUri"] = "s3://bucket/key"  # what `sam package` would put there
    return transform(source, {}, _NoManagedPolicies())


class _NoManagedPolicies:
    """The functions' roles are written out, so SAM has no managed policy to look up."""

    def load(self):
        return {}
