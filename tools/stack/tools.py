"""The Python tools the stack drives (ministack, SAM, cargo-lambda, cfn-lint), in a virtual environment of their own.

Pinned by version and hash in requirements.txt; made once, and again only when that file or the
interpreter changes.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys

from .paths import HOME, REQUIREMENTS, REQUIREMENTS_CHECKOV, VENV, VENV_CHECKOV
from .say import Failed, run_logged, step

PYTHON_MIN = (3, 10)
"""What aws-sam-cli 1.167 needs; the driver itself runs on 3.9."""


def ensure():
    """Makes the environment unless it is there and up to date."""
    _ensure(VENV, REQUIREMENTS, "Installing the pinned Python tools")


def checkov():
    """The path of checkov, in an environment of its own: it pins what the other tools pin otherwise."""
    _ensure(VENV_CHECKOV, REQUIREMENTS_CHECKOV, "Installing checkov")
    return VENV_CHECKOV / "bin/checkov"


def install(arguments, log, venv=VENV):
    """Runs pip, which takes only files whose hash is pinned."""
    if not (venv / "bin/pip").exists():
        run_logged([python(), "-m", "venv", venv], HOME / "logs/venv.log")
    command = [venv / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", *arguments]
    run_logged(command, log)


def _ensure(venv, requirements, title):
    HOME.mkdir(exist_ok=True)
    with open(f"{venv}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp, wanted = venv / "requirements.sha256", _digest(requirements)
        if stamp.exists() and stamp.read_text() == wanted:
            return
        with step(title):
            shutil.rmtree(venv, ignore_errors=True)
            run_logged([python(), "-m", "venv", venv], HOME / "logs/venv.log")
            install(["--no-deps", "-r", requirements], HOME / "logs/pip.log", venv)
        stamp.write_text(wanted)


def tool(name):
    """The path of an installed tool."""
    return VENV / "bin" / name


def path_first():
    """PATH with the environment's tools first: SAM looks for cargo-lambda there, and cargo-lambda for zig."""
    return f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"


def python():
    """An interpreter that is new enough and can make virtual environments; this one if it will do."""
    names = [sys.executable, "python3", *(f"python3.{minor}" for minor in range(14, 9, -1))]
    found = next((path for path in map(shutil.which, names) if path and _will_do(path)), None)
    if found is None:
        raise Failed(f"no Python {PYTHON_MIN[0]}.{PYTHON_MIN[1]} or newer with the venv module")
    return found


def _will_do(path):
    check = f"import sys, venv, ensurepip; sys.exit(sys.version_info < {PYTHON_MIN})"
    return subprocess.call([path, "-c", check], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0


def _digest(requirements):
    return hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
