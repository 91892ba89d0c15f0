"""The last release: its tree from git, built once and kept, to upgrade from."""

import io
import subprocess
import tarfile

from tools.stack import deploy
from tools.stack.paths import HOME, PROJECT
from tools.stack.say import Failed, step

COMMIT = "40ae443"
"""Change it with each release. Its template and its binaries are what an upgrade starts from."""

FOLDER = HOME / "releases" / COMMIT


def build():
    """The folder of the release's built template and functions."""
    built = FOLDER / "build"
    if not (built / "template.yaml").exists():
        _check_out()
        with step(f"Building the last release ({COMMIT})"):
            deploy.build(FOLDER / "template.yaml", built, HOME / "logs/release.log")
    return built


def _check_out():
    archived = subprocess.run(["git", "archive", COMMIT], cwd=PROJECT, capture_output=True, check=False)
    if archived.returncode != 0:
        raise Failed(f"the last release's commit {COMMIT} is not in this clone: {archived.stderr.decode().strip()}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as tree:
        tree.extractall(FOLDER, filter="data")
