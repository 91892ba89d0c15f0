"""ministack, the AWS emulator: SQS, S3, Lambda as local processes, schedules and CloudFormation.

Its environment is built from nothing, because every function inherits it: a variable that is set here
by accident would be seen by functions that have no such variable on AWS. All its files, the unpacked
functions among them, stay in the stack's folder, so that stacks run side by side.
"""

import os
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from . import process, tools
from .say import Failed, say

REGION = "us-east-1"
COMMAND = [tools.tool("python"), Path(__file__).with_name("ministack_main.py")]


def start(folder):
    """Starts the emulator with its state in `folder`/emulator; returns its part of the state."""
    folder = Path(folder).resolve() / "emulator"
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    log, last = folder / "ministack.log", process.last_port(folder)
    for port in process.ports(folder):
        if last not in (None, port):
            _forget(folder)
        identity = process.start(COMMAND, log, env=_environment(folder, port), cwd=folder)
        try:
            process.wait_until(lambda port=port: _answers(port), identity, log, "the AWS emulator")
            return {**identity, "port": port, "folder": str(folder), "log": str(log)}
        except Failed as failed:
            process.end(identity)
            refused = failed
    raise refused


def stop(server):
    """Stops the emulator and the functions it runs; it writes its state down first."""
    process.end(server)


def client_environment(server):
    """What an AWS client needs to reach the emulator and nothing else."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server['port']}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def _environment(folder, port):
    return {
        **client_environment({"port": port}),
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "TMPDIR": str(folder / "tmp"),
        "LANG": "C.UTF-8",
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "PERSIST_STATE": "1",
        "STATE_DIR": str(folder / "state"),
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(folder / "s3"),
        "MINISTACK_REGION": REGION,
        "IOT_MTLS_ENABLED": "0",  # it would take a well-known port
        "AUTH": "true",  # a function may do what its role allows, as on AWS; the keys above are the account's own
        "LOG_LEVEL": "INFO",
        # AWS sets it from a function's LoggingConfig, which is JSON for all of ours; ministack does not.
        "AWS_LAMBDA_LOG_FORMAT": "JSON",
    }


def _forget(folder):
    """Drops what was kept under another port: queues are known by their URL, and it holds the port."""
    say("  the emulator's port of last time is taken: it starts empty")
    for name in ("state", "s3"):
        shutil.rmtree(folder / name, ignore_errors=True)


def _answers(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_ministack/health", timeout=2) as answer:
            return answer.status == 200
    except (OSError, urllib.error.URLError):
        return False
