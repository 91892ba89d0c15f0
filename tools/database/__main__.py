"""Tests of the way to the database that need a server of their own.

    python3 -m tools.database tls        a PostgreSQL with TLS and a private authority: who is believed, who is not
    python3 -m tools.database pooler     the store's tests through pgbouncer in transaction mode

The second needs pgbouncer 1.21 or later on the PATH, or named by PGBOUNCER.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.stack import pgwire, postgres, servers

from . import certificates, pooler

STORE_TESTS = ["cargo", "test", "--package", "store", "--tests", "--quiet"]
# Migrators hold each other off by a lock of the session, so they go to the server itself and never through a pooler.
NEEDS_A_SESSION = ["--skip", "two_migrators_at_once"]
TLS_TESTS = ["cargo", "test", "--package", "runtime", "--test", "database", "--quiet", "--", "--ignored", "tls"]


def tls() -> int:
    """Runs the tests of TLS."""
    with servers.temporary(["postgres"]) as (now, path):
        folder = Path(now["postgres"].get("folder", path.parent)) / "tls"
        folder.mkdir(mode=0o755)
        authority = certificates.make(folder, "server", "localhost")
        stranger = certificates.make(folder, "stranger", "localhost")
        port = now["postgres"]["port"]
        _switch_on(port, folder / "server.crt", folder / "server.key")
        environment = {
            "TAILCAR_TLS_URL": f"postgres://postgres@localhost:{port}/postgres",
            "TAILCAR_TLS_ROOT": str(authority),
            "TAILCAR_TLS_STRANGER": str(stranger),
        }
        return subprocess.call(TLS_TESTS, env={**os.environ, **environment})


def through_pooler() -> int:
    """Runs the store's tests through pgbouncer."""
    program = os.environ.get("PGBOUNCER") or shutil.which("pgbouncer")
    if program is None or _version(program) < (1, 21):
        print("pgbouncer 1.21 or later is needed: older ones forget prepared statements", file=sys.stderr)
        return 2
    with servers.temporary(["postgres"]) as (now, path):
        port = now["postgres"]["port"]
        url = postgres.ensure_database(now["postgres"], "tailcar")
        with pooler.running(program, port, path.parent) as pooled:
            environment = {"DATABASE_URL": url.replace(f":{port}/", f":{pooled}/"), "SQLX_OFFLINE": "true"}
            return subprocess.call([*STORE_TESTS, "--", *NEEDS_A_SESSION, *sys.argv[2:]], env={**os.environ, **environment})


def _switch_on(port: int, certificate: Path, key: Path) -> None:
    """Makes the server that is running speak TLS from its next connection on."""
    if os.geteuid() == 0:
        os.chown(key, postgres._unprivileged().pw_uid, -1)
    for name, value in (("ssl_cert_file", certificate), ("ssl_key_file", key), ("ssl", "on")):
        pgwire.execute(port, f"alter system set {name} = '{value}'")
    pgwire.execute(port, "select pg_reload_conf()")


def _version(program: str) -> tuple[int, ...]:
    said = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    return tuple(map(int, found.groups())) if found else (0, 0)


if __name__ == "__main__":
    sys.exit({"tls": tls, "pooler": through_pooler}[sys.argv[1]]())
