"""pgbouncer before a PostgreSQL, for one run."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS_MAX = 10

SETTINGS = """
[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
; The functions prepare each statement once under a name; the pooler must know it on every connection.
max_prepared_statements = 500
default_pool_size = 3
max_db_connections = 3
max_client_conn = 2000
; What a test's pool sets for its session; a function behind a pooler sets nothing.
ignore_startup_parameters = extra_float_digits,options
server_idle_timeout = 5
"""


@contextmanager
def running(program: str, server: int, folder: Path) -> Iterator[int]:
    """The port of a pgbouncer before the PostgreSQL at port `server`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = folder / "pgbouncer.ini"
    # `auth_type = any` logs every client in as one user.
    settings.write_text(SETTINGS.format(server=server, port=port).replace(f"port={server}", f"port={server} user=postgres"))
    settings.chmod(0o644)
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    with open(folder / "pgbouncer.log", "wb") as log, subprocess.Popen(
        [program, "-q", *user, settings], stdout=log, stderr=log
    ) as child:
        try:
            _await(port)
            yield port
        finally:
            child.terminate()


def _await(port: int) -> None:
    until = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
