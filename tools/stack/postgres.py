"""A PostgreSQL server of the stack's own: found, else installed, and started on a free loopback port.

Trust authentication, loopback only, no sockets in the file system: the data are a developer's and can
be made again at any time, which is also why the server does not wait for the disk.

PostgreSQL refuses to run as root, so root starts it as `postgres` or `nobody`. Where that user cannot
reach the project's folder, the data go to a temporary folder, and this is said.
"""

import glob
import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from . import pgwire, process, tools
from .paths import HOME, REQUIREMENTS_POSTGRES
from .say import Failed, say, step

CONNECTIONS_MAX = 300
"""Tests run side by side, each with a database and a pool of its own."""

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": CONNECTIONS_MAX,
    "shared_buffers": "256MB",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "timezone": "UTC",
    "log_line_prefix": "%m [%p] %a ",
    "log_min_duration_statement": "1s",
}


def start(folder):
    """Starts a server whose data are in `folder`/postgres, made if need be; returns its part of the state."""
    binaries = find_or_install()
    folder = _reachable(Path(folder) / "postgres")
    data, log = folder / "data", folder / "postgres.log"
    if not (data / "PG_VERSION").exists():
        _make_cluster(binaries, data)
    for port in process.ports(folder):
        options = [f"-c{name}={value}" for name, value in SETTINGS.items()]
        identity = process.start([binaries / "postgres", "-D", data, "-p", str(port), *options], log, **_as_user())
        try:
            process.wait_until(lambda port=port: pgwire.accepts(port), identity, log, "PostgreSQL")
            return {**identity, "port": port, "folder": str(folder), "log": str(log), "binaries": str(binaries)}
        except Failed as failed:
            process.end(identity)
            refused = failed
    raise refused


def stop(server):
    """Stops the server: clients are disconnected, nothing is lost."""
    process.end(server, signal.SIGINT)


def url(server, database):
    """The connection string of a database of this server."""
    return f"postgres://postgres@127.0.0.1:{server['port']}/{database}"


def ensure_database(server, name):
    """Makes the database unless it is there; returns its connection string."""
    if not pgwire.execute(server["port"], f"select 1 from pg_database where datname = '{name}'"):
        pgwire.execute(server["port"], f'create database "{name}"')
    return url(server, name)


def find_or_install():
    """The folder of initdb and postgres: found on this machine, else from Debian, else from PyPI."""
    found = _find()
    if found is None and _running_as_root() and shutil.which("apt-get"):
        found = _install_from_debian()
    return found or _install_from_pypi()


def _find():
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(map(Path, glob.glob("/usr/lib/postgresql/*/bin")), key=_version, reverse=True)
    folders += map(Path, glob.glob("/usr/pgsql-*/bin") + glob.glob("/opt/homebrew/opt/postgresql@*/bin"))
    return next((folder for folder in folders if _serves(folder)), None)


def _version(folder):
    name = folder.parent.name
    return int(name) if name.isdigit() else 0


def _serves(folder):
    return all(os.access(folder / name, os.X_OK) for name in ("initdb", "postgres"))


def _install_from_debian():
    """Installs Debian's server without letting it make a cluster of its own; None when that fails."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with step("Installing PostgreSQL with apt-get"):
        subprocess.call(["apt-get", "update", "-q"], env=environment, **quiet)
        subprocess.call(
            ["apt-get", "install", "-qy", "--no-install-recommends", "postgresql-common"], env=environment, **quiet
        )
        config = Path("/etc/postgresql-common/createcluster.conf")
        if config.exists():
            config.write_text(config.read_text() + "\ncreate_main_cluster = false\n")
        subprocess.call(["apt-get", "install", "-qy", "--no-install-recommends", "postgresql"], env=environment, **quiet)
    return _find()


def _install_from_pypi():
    """Unpacks the server that a PyPI wheel ships; it works for any user and touches nothing else."""
    target = _reachable(HOME / "postgres-wheel")
    if not glob.glob(f"{target}/*/pginstall/bin/postgres"):
        with step("Installing PostgreSQL from PyPI"):
            tools.install(["--no-deps", "--target", target, "-r", REQUIREMENTS_POSTGRES], HOME / "logs/postgres-pip.log")
    folder = next(map(Path, glob.glob(f"{target}/*/pginstall/bin")), None)
    if folder is None or not _serves(folder):
        raise Failed("no PostgreSQL on this machine, and none could be installed: please install its server package")
    return folder


def _make_cluster(binaries, data):
    data.parent.mkdir(parents=True, exist_ok=True)
    command = [binaries / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
    made = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **_as_user())
    if made.returncode != 0:
        raise Failed(f"initdb failed:\n{made.stdout[-2000:]}{made.stderr[-2000:]}")


def _running_as_root():
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _unprivileged():
    names = [entry.pw_name for entry in pwd.getpwall()]
    return pwd.getpwnam("postgres" if "postgres" in names else "nobody")


def _as_user():
    """Options of `subprocess` that drop root's rights; none when there are none to drop."""
    if not _running_as_root():
        return {}
    user = _unprivileged()
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _reachable(folder):
    """`folder`, made for the server's user, or a temporary one where that user cannot get to it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if _running_as_root():
        if not all(parent.stat().st_mode & 0o001 for parent in folder.parents):
            folder = _outside(folder)
        folder.mkdir(parents=True, exist_ok=True)
        os.chown(folder, _unprivileged().pw_uid, _unprivileged().pw_gid)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _outside(folder):
    """A folder under the system's temporary one, the same for the same `folder`, so that data are found again."""
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    other = Path(tempfile.gettempdir()) / f"tailcar-{digest}-{folder.name}"
    say(f"  PostgreSQL's user cannot reach {folder}; using {other}")
    return other
