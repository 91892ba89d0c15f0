"""Puts the functions onto the stack as onto AWS: `sam build` and `sam deploy` of the project's own template.

Local builds differ from a release in speed only: no link-time optimisation and little optimisation,
set by Cargo's own variables for these builds alone.
"""

import os
import re
from pathlib import Path

from . import aws, emulator, scaffold, state, tools
from .paths import PROJECT, TEMPLATE
from .say import run_logged, step

STACK_NAME = "tailcar"
FAST_RELEASE = {
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
    # The host is the target here, so the system's linker will do and zig is not needed.
    "CARGO_LAMBDA_COMPILER": "cargo",
}


def deploy(folder, now, parameters, template=TEMPLATE):
    """Builds, deploys with `parameters` and brings the schema up to date; returns the state, which is also saved."""
    stack = scaffold.stack_of(template)
    built = folder / ("build" if template == TEMPLATE else f"build-{stack}")
    with step("Building the functions (sam build)"):
        build(template, built, folder / "logs/build.log")
    with step(f"Deploying {stack} (sam deploy)"):
        put(built, now, parameters, folder / "logs/deploy.log", stack)
    now = {**now, **describe(now, parameters, stack)}
    state.save(now, folder / "stack.json")
    with step("Migrating the database"):  # done by ours, when deployed; not by every template
        aws.invoke_or_fail(now, now["functions"]["migrator"], {})
    return now


def build(template, built, log):
    """Builds the functions of a template into the folder `built`; all builds share the project's target folder."""
    options = ["--config-env", "local", "--template", template, "--build-dir", built]
    run_logged([tools.tool("sam"), "build", *options], log, cwd=PROJECT, env=_environment(NOWHERE))


def put(built, now, parameters, log, stack=STACK_NAME):
    """Deploys a build onto the stack."""
    overrides = {"Profile": "local", "DatabaseUrl": now["database_url"], **parameters}
    options = [
        *("--config-env", "local", "--config-file", PROJECT / "samconfig.toml", "--template", built / "template.yaml"),
        *("--stack-name", stack),
        *("--parameter-overrides", *(f"{name}={value}" for name, value in overrides.items())),
    ]
    run_logged([tools.tool("sam"), "deploy", *options], log, cwd=PROJECT, env=_environment(now["aws"]))


def delete(now, log):
    """Deletes the stack as a person would."""
    options = ["--stack-name", STACK_NAME, "--no-prompts", "--region", emulator.REGION]
    run_logged([tools.tool("sam"), "delete", *options], log, cwd=PROJECT, env=_environment(now["aws"]))


def program(name, folder):
    """Builds a program of the workspace the way functions are built, so that both share every dependency; its path."""
    with step(f"Building {name}"):
        command = ["cargo", "lambda", "build", "--release", "--bin", name]
        run_logged(command, folder / "logs/program.log", cwd=PROJECT, env=_environment({}))
    return Path(os.environ.get("CARGO_TARGET_DIR", PROJECT / "target")) / "lambda" / name / "bootstrap"


def parameters_of(built):
    """The names of the parameters of a built template."""
    section = (built / "template.yaml").read_text().partition("\nParameters:\n")[2]
    return set(re.findall(r"^  (\w+):$", re.split(r"^\S", section, flags=re.MULTILINE)[0], flags=re.MULTILINE))


def describe(now, parameters, stack=STACK_NAME):
    """What is deployed, by the names the project uses: packages and destinations."""
    outputs = aws.outputs(now, stack)
    names = [value for name, value in outputs.items() if name.endswith("FunctionName")]
    plain = [name for name in outputs if name.endswith("QueueUrl") and not name.endswith("DeadLetterQueueUrl")]
    destinations = [name.removesuffix("QueueUrl") for name in plain]
    return {
        "functions": {name.removeprefix(f"{stack}-"): name for name in names},
        "queues": {name.lower(): outputs[f"{name}QueueUrl"] for name in destinations},
        "dead_letter_queues": {name.lower(): outputs[f"{name}DeadLetterQueueUrl"] for name in destinations},
        "bucket": outputs.get("ArtifactBucket"),
        "config": parameters.get("ConfigUri", ""),
        "emulator_pid": now["emulator"]["pid"],
    }


NOWHERE = {"AWS_REGION": emulator.REGION, "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}
"""For SAM, which wants credentials even when it calls nobody."""


def _environment(reach):
    shared = {"CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(PROJECT / "target"))}
    return {**os.environ, **reach, **FAST_RELEASE, **shared, "PATH": tools.path_first(), "SAM_CLI_TELEMETRY": "0"}
