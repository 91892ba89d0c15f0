"""The commands of the local stack; `make` calls them, and so can you.

Usage: python3 -m tools.stack COMMAND

  preflight            check that this machine has what is needed
  up                   start PostgreSQL and the AWS emulator, and keep them
  status               say what is running and how to reach it
  down                 stop them; their data stay in .tailcar/
  run -- COMMAND …     run a command against temporary servers, then remove them
  prepare [--check]    rewrite .sqlx/ from a real database, or check it (and lint) only
  help                 this text
"""

import os
import sys

from . import preflight, prepare, process, servers, state, tools
from .paths import STATE
from .say import Failed, say


def _preflight(_):
    preflight.check()
    say("  nothing is missing")


def _up(_):
    preflight.check()
    tools.ensure()
    now = servers.up()
    say(f"  PostgreSQL {now['database_url']}\n  AWS        {now['aws']['AWS_ENDPOINT_URL']}")


def _status(_):
    now = state.load()
    for name, alive in state.running(now).items():
        server = now.get(name)
        print(f"{name}: {'port ' + str(server['port']) + ', log ' + server['log'] if alive else 'not running'}")
    for name, physical in now.get("functions", {}).items():
        print(f"function {name}: {physical}")


def _down(_):
    servers.down()


def _run(arguments):
    command = arguments[1:] if arguments[:1] == ["--"] else arguments
    if not command:
        raise Failed("run what? python3 -m tools.stack run -- COMMAND …")
    preflight.check()
    tools.ensure()
    return servers.run(command)


def _prepare(arguments):
    work = prepare.check if arguments == ["--check"] else prepare.rewrite
    now = state.load()
    if process.alive(now.get("postgres")):
        return work(now["postgres"]["port"], dict(os.environ))
    with servers.temporary(["postgres"]) as (now, _):
        return work(now["postgres"]["port"], dict(os.environ))


COMMANDS = {
    "preflight": _preflight,
    "up": _up,
    "status": _status,
    "down": _down,
    "run": _run,
    "prepare": _prepare,
}


def main(arguments):
    """Runs one command; returns the exit code."""
    name, rest = (arguments[0], arguments[1:]) if arguments else ("help", [])
    if name not in COMMANDS:
        print(__doc__.strip())
        return 0 if name in ("help", "-h", "--help") else 2
    try:
        return COMMANDS[name](rest) or 0
    except Failed as failed:
        say(f"\n{failed}")
        return 1
    except KeyboardInterrupt:
        say("\ninterrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
