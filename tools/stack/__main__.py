"""The commands of the local stack; `make` calls them, and so can you.

Usage: python3 -m tools.stack COMMAND

  preflight                check that this machine has what is needed
  up                       start PostgreSQL and the AWS emulator, and keep them
  deploy [Name=value …]    build the functions and deploy template.yaml onto the running stack; with --template FILE
                           another one, with a database of its own, as a stack called like its folder
  dev [Name=value …]       up, deploy, and say how to use it; Name=value sets a parameter of the template
  status                   say what is running and how to reach it
  invoke FUNCTION [EVENT]  invoke a function with an event: JSON, @file, or {} when left out
  logs FUNCTION [--follow] show what a function wrote
  sql STATEMENT            run a statement in the database of what was deployed last; print its rows
  kill FUNCTION            end every process of a function as `kill -9` does; say how many there were
  watch [FUNCTION]         serve all functions by name with cargo lambda watch; QUEUE_URL is that FUNCTION's
  down                     stop both servers; their data stay in .tailcar/
  run -- COMMAND …         run a command against temporary servers, then remove them
  demo [ARGUMENT …]        replay a session on a stack of its own; `demo --help` explains the arguments
  prepare [--check]        describe the SQL statements in .sqlx/ from a real database; or only compare, and lint
  new-template PIPELINE DESTINATION …
                           write the template of a pipeline of your own; docs/extending.md says the rest
  new-destination NAME     write the block of one more destination for such a template
  walk PAGE …              do what a page of documentation says, in a copy of the project
  check-template           lint and scan template.yaml and its translation, and test what must hold in them
  parameters               write docs/parameters.md from template.yaml
  bootstraps [FOLDER]      say of each built function whether it can start on AWS, how large and how fast it is
  rehearse [NAME …]        deploy, upgrade, roll back and delete on emulators of its own, with authorization on
  selftest                 run the tests of this package
  help                     this text
"""

import os
import sys

from . import commands, tools
from .paths import PROJECT
from .say import Failed, say


def main(arguments):
    """Runs one command; returns the exit code."""
    name, rest = (arguments[0], arguments[1:]) if arguments else ("help", [])
    command = commands.COMMANDS.get(name)
    if command is None:
        print(__doc__.strip())
        return 0 if name in ("help", "-h", "--help") else 2
    try:
        if command in commands.WITH_TOOLS:
            _in_the_tools_environment(arguments)
        return command(rest) or 0
    except Failed as failed:
        say(f"\n{failed}")
        return 1
    except KeyboardInterrupt:
        say("\ninterrupted")
        return 130


def _in_the_tools_environment(arguments):
    """Goes on in the virtual environment, where boto3 and SAM's translator are. Does not return from outside it."""
    commands.preflight([])
    tools.ensure()
    python = tools.tool("python")
    if os.path.realpath(sys.prefix) != os.path.realpath(python.parent.parent):
        environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
        os.execve(python, [python, "-m", "tools.stack", *arguments], environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
