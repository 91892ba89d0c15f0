"""What each command does, in terms of the other modules."""

import json
import os
import subprocess
import unittest

from . import (
    aws,
    bootstraps,
    deploy,
    parameters,
    pgwire,
    postgres,
    prepare,
    process,
    rehearse,
    scaffold,
    servers,
    state,
    template,
    tools,
    walk,
)
from . import preflight as machine
from .paths import HOME, PROJECT, STATE
from .say import Failed, say

DEMO = HOME / "demo"
"""The demo has a stack of its own, so that it never meets what a developer is doing on theirs."""

HOW_TO = """
  PostgreSQL   {database_url}
  AWS          {endpoint}
  artifacts    s3://{bucket}

  invoke       python3 -m tools.stack invoke collector '{{}}'
  logs         python3 -m tools.stack logs relay --follow
  functions    {functions}
  deploy again make deploy-local
  stop         make stop

  docs/local-development.md says more."""


def preflight(_):
    """Names everything that is missing."""
    machine.check()


def up(_):
    """Starts the servers and keeps them."""
    now = servers.up()
    say(f"  PostgreSQL {now['database_url']}\n  AWS        {now['aws']['AWS_ENDPOINT_URL']}")


def deploy_again(arguments):
    """Deploys onto the running stack."""
    now = _running()
    if arguments[:1] == ["--template"]:
        file, arguments = _argument(arguments[1:], "deploy --template FILE"), arguments[2:]
        database_url = postgres.ensure_database(now["postgres"], scaffold.stack_of(file))
        deploy.deploy(HOME, {**now, "database_url": database_url}, _parameters(arguments), file)
    else:
        deploy.deploy(HOME, now, _parameters(arguments))


def dev(arguments):
    """Leaves a deployed stack running."""
    now = deploy.deploy(HOME, servers.up(), _parameters(arguments))
    shown = {**now, "functions": " ".join(now["functions"]), "endpoint": now["aws"]["AWS_ENDPOINT_URL"]}
    print(HOW_TO.format(**shown))


def status(_):
    """Says what is running."""
    now = state.load()
    for name, alive in state.running(now).items():
        server = now.get(name)
        print(f"{name}: {'port {port}, log {log}'.format(**server) if alive else 'not running'}")
    for name, physical in now.get("functions", {}).items():
        print(f"function {name}: {physical}")


def invoke(arguments):
    """Invokes a function and prints its answer."""
    now = _running()
    function = _deployed(now, arguments)
    answer, failed = aws.invoke(now, function, _event(arguments[1:]))
    print(answer)
    return 1 if failed else 0


def logs(arguments):
    """Prints a function's log."""
    now = _running()
    following = "--follow" in arguments
    for line in aws.follow(now, _deployed(now, arguments), still_wanted=lambda: following):
        print(line, flush=True)


def sql(arguments):
    """Prints the rows of a statement."""
    now, statement = _running(), _argument(arguments, "sql STATEMENT")
    try:
        rows = pgwire.execute(now["postgres"]["port"], statement, now["database_url"].rpartition("/")[2])
    except pgwire.ServerError as refused:
        raise Failed(str(refused)) from refused
    for row in rows:
        print("\t".join("" if value is None else value for value in row))


def kill(arguments):
    """Ends the processes of a function."""
    now = _running()
    print(process.kill_children(now["emulator"]["pid"], "AWS_LAMBDA_FUNCTION_NAME", _deployed(now, arguments)))


def new_template(arguments):
    """Writes the template of a pipeline."""
    pipeline = _argument(arguments, "new-template PIPELINE DESTINATION …")
    print(scaffold.template(pipeline, arguments[1:]), end="")


def new_destination(arguments):
    """Writes the block of a destination."""
    print(scaffold.block(_argument(arguments, "new-destination NAME")), end="")


def follow_page(arguments):
    """Does what pages say, one after the other."""
    _argument(arguments, "walk PAGE …")
    for page in arguments:
        walk.walk(page)


def watch(arguments):
    """Serves every function by name, rebuilt when its code changes."""
    now = _running()
    named = _deployed(now, arguments or ["news-consumer"])
    environment = {**os.environ, **servers.variables(now), "PATH": tools.path_first()}
    for function in [*now["functions"].values(), named]:
        environment.update(aws.environment(now, function))
    # A lingering relay would answer after more than a minute; nobody waits that long at a terminal.
    environment["RELAY_LINGER_SECONDS"] = "0"
    say("  curl -d @docs/events/relay.json http://127.0.0.1:9000/2015-03-31/functions/relay/invocations")
    command = ["cargo", "lambda", "watch", "--invoke-address", "127.0.0.1", "--concurrency", "4"]
    return subprocess.call(command, cwd=PROJECT, env=environment)


def down(_):
    """Stops the servers."""
    servers.down()


def run(arguments):
    """Runs a command against temporary servers."""
    command = arguments[1:] if arguments[:1] == ["--"] else arguments
    if not command:
        raise Failed("run what? python3 -m tools.stack run -- COMMAND …")
    machine.check()
    tools.ensure()
    return servers.run(command, {"PATH": tools.path_first()})


def demo(arguments):
    """Replays a session on the demo's own stack, which keeps its data for the next time."""
    path = DEMO / "stack.json"
    parameters = {
        "ConfigUri": str(DEMO / "tailcar.toml"),
        "CollectorScheduleState": "DISABLED",
        "RelayScheduleState": "DISABLED",
        # The demo fires the relay again whenever it has ended, and at its end waits for the last run.
        "RelayLingerSeconds": "5",
    }
    try:
        now = deploy.deploy(DEMO, servers.up(DEMO, path), parameters)
        program = deploy.program("demo", DEMO)
        return subprocess.call([program, *arguments], env={**os.environ, **servers.variables(now, path)})
    finally:
        servers.down(path)


def prepare_statements(arguments):
    """Rewrites or compares .sqlx/."""
    work = prepare.check if arguments == ["--check"] else prepare.rewrite
    server = state.load().get("postgres")
    if process.alive(server):
        return work(server["port"], dict(os.environ))
    with servers.temporary(["postgres"]) as (now, _):
        return work(now["postgres"]["port"], dict(os.environ))


def check_template(_):
    """Lints, scans and tests the template and its translation."""
    template.check()


def write_parameters(_):
    """Writes docs/parameters.md."""
    parameters.write()


def measure_bootstraps(arguments):
    """Says of each built function whether it can start on AWS, and how."""
    bootstraps.report(arguments[0] if arguments else ".aws-sam/build")


def rehearse_deploys(arguments):
    """Deploys, upgrades, rolls back and deletes on emulators of its own."""
    return rehearse.run(arguments)


def selftest(_):
    """Runs this package's tests."""
    found = unittest.defaultTestLoader.discover(str(PROJECT / "tools/stack/tests"), top_level_dir=str(PROJECT))
    return 0 if unittest.TextTestRunner(verbosity=1).run(found).wasSuccessful() else 1


COMMANDS = {
    "preflight": preflight,
    "up": up,
    "deploy": deploy_again,
    "dev": dev,
    "status": status,
    "invoke": invoke,
    "logs": logs,
    "sql": sql,
    "kill": kill,
    "new-template": new_template,
    "new-destination": new_destination,
    "watch": watch,
    "walk": follow_page,
    "down": down,
    "run": run,
    "demo": demo,
    "prepare": prepare_statements,
    "check-template": check_template,
    "parameters": write_parameters,
    "bootstraps": measure_bootstraps,
    "rehearse": rehearse_deploys,
    "selftest": selftest,
}

WITH_TOOLS = {
    *(up, deploy_again, dev, invoke, logs, watch, demo, follow_page, selftest),
    *(check_template, write_parameters, measure_bootstraps, rehearse_deploys),
}
"""Commands that run in the tools' virtual environment."""


def _running():
    now = state.load(STATE)
    if not all(state.running(now).values()):
        raise Failed("the stack is not running; `python3 -m tools.stack up` starts it, `make dev` deploys onto it as well")
    return now


def _argument(arguments, usage):
    if not arguments:
        raise Failed(f"python3 -m tools.stack {usage}")
    return arguments[0]


def _deployed(now, arguments):
    functions = now.get("functions", {})
    if not arguments or arguments[0] not in functions:
        raise Failed(f"name a deployed function: {', '.join(functions) or 'none is deployed, `make dev` does it'}")
    return functions[arguments[0]]


def _event(arguments):
    text = arguments[0] if arguments else "{}"
    if text.startswith("@"):
        with open(text[1:], encoding="utf-8") as file:
            text = file.read()
    try:
        return json.loads(text)
    except ValueError as fault:
        raise Failed(f"the event is not JSON: {fault}") from fault


def _parameters(arguments):
    pairs = [argument.partition("=") for argument in arguments]
    if not all(name and separator for name, separator, _ in pairs):
        raise Failed("parameters of the template are given as Name=value")
    return {name: value for name, _, value in pairs}
