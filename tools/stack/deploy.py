"""Puts the functions onto the stack as onto AWS: `sam build` and `sam deploy` of the project's own template.

Local builds differ from a release in speed only: no link-time optimisation and little optimisation,
set by Cargo's own variables for these builds alone.
"""

import os
from pathlib import Path

from . import aws, scaffold, state, tools
from .paths import PROJECT, TEMPLATE
from .say import run_logged, step

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
        _sam(["build", "--config-env", "local", "--template", template, "--build-dir", built], now, folder / "logs/build.log")
    with step(f"Deploying {stack} (sam deploy)"):
        _sam(["deploy", *_deploy_options(built, now, parameters, stack)], now, folder / "logs/deploy.log")
    now = {**now, **_description(now, parameters, stack)}
    state.save(now, folder / "stack.json")
    with step("Migrating the database"):
        aws.invoke_or_fail(now, now["functions"]["migrator"], {})
    return now


def program(name, folder):
    """Builds a program of the workspace the way functions are built, so that both share every dependency; its path."""
    with step(f"Building {name}"):
        environment = {**os.environ, **FAST_RELEASE, "PATH": tools.path_first()}
        command = ["cargo", "lambda", "build", "--release", "--bin", name]
        run_logged(command, folder / "logs/program.log", cwd=PROJECT, env=environment)
    return Path(os.environ.get("CARGO_TARGET_DIR", PROJECT / "target")) / "lambda" / name / "bootstrap"


def _deploy_options(built, now, parameters, stack):
    overrides = {"Profile": "local", "DatabaseUrl": now["database_url"], **parameters}
    return [
        *("--config-env", "local", "--config-file", PROJECT / "samconfig.toml", "--template", built / "template.yaml"),
        *("--stack-name", stack),
        *("--parameter-overrides", *(f"{name}={value}" for name, value in overrides.items())),
    ]


def _sam(arguments, now, log):
    environment = {**os.environ, **now["aws"], **FAST_RELEASE, "PATH": tools.path_first(), "SAM_CLI_TELEMETRY": "0"}
    run_logged([tools.tool("sam"), *arguments], log, cwd=PROJECT, env=environment)


def _description(now, parameters, stack):
    """What is deployed, by the names the project uses: packages and destinations."""
    outputs = aws.outputs(now, stack)
    destinations = {name: name.removesuffix("QueueUrl") for name in outputs if name.endswith("QueueUrl")}
    plain = {name: part for name, part in destinations.items() if not part.endswith("DeadLetter")}
    dead = {name: part.removesuffix("DeadLetter") for name, part in destinations.items() if name not in plain}
    names = [value for name, value in outputs.items() if name.endswith("FunctionName")]
    return {
        "functions": {name.removeprefix(f"{stack}-"): name for name in names},
        "queues": {part.lower(): outputs[name] for name, part in plain.items()},
        "dead_letter_queues": {part.lower(): outputs[name] for name, part in dead.items()},
        "bucket": outputs.get("ArtifactBucket"),
        "config": parameters.get("ConfigUri", ""),
        "emulator_pid": now["emulator"]["pid"],
    }
