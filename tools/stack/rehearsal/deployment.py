"""One deployed stack in a rehearsal: what a person would do to it, and what they would look at.

Every wait is bounded and says what it waited for.
"""

import time
from contextlib import contextmanager

from tools.stack import aws, deploy, pgwire, servers
from tools.stack.say import Failed

from . import session

QUIET = {
    "CollectorScheduleState": "DISABLED",
    "RelayScheduleState": "DISABLED",
    "RelayLingerSeconds": "2",
    **session.PARAMETERS,
}
"""The rehearsal collects and sends when it says so; the other schedules run."""

PATIENCE_S = 90


@contextmanager
def fresh(build, parameters=None):
    """A stack with nothing in it but the input, deployed from `build`; gone at the end of the block."""
    with servers.temporary() as (now, path):
        session.put({**now, "aws": now["aws"]})
        stack = Deployment(now, path.parent)
        stack.deploy(build, parameters)
        yield stack


class Deployment:
    """A stack on the emulator."""

    def __init__(self, now, folder):
        self.now = now
        self.folder = folder

    def deploy(self, build, parameters=None, log="deploy"):
        """Deploys a build, over whatever is deployed."""
        chosen = {**QUIET, **(parameters or {})}
        known = deploy.parameters_of(build)
        chosen = {name: value for name, value in chosen.items() if name in known}
        deploy.put(build, self.now, chosen, self.folder / f"logs/{log}.log")
        self.now = {**self.now, **deploy.describe(self.now, chosen)}

    def invoke(self, function, event=None):
        """A function's answer, and whether it failed."""
        return aws.invoke(self.now, self.now["functions"][function], event or {})

    def do(self, function, event=None):
        """The answer of a function that must succeed."""
        return aws.invoke_or_fail(self.now, self.now["functions"][function], event or {})

    def restart(self, function):
        """Gives a function new sandboxes, as a change of its configuration does."""
        name, client = self.now["functions"][function], self.client("lambda")
        variables = client.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        variables["RESTARTED"] = str(int(variables.get("RESTARTED", "0")) + 1)
        client.update_function_configuration(FunctionName=name, Environment={"Variables": variables})

    def client(self, service):
        """A client with the account's own rights."""
        return aws.client(self.now, service)

    def rows(self, sql):
        """Rows of the database, as text."""
        return pgwire.execute(self.now["postgres"]["port"], sql, servers.DATABASE)

    def count(self, sql):
        """The one number that a statement answers."""
        return int(self.rows(sql)[0][0])

    def jobs(self):
        """Number of jobs by status."""
        return {status: int(number) for status, number in self.rows("select status, count(*) from job group by 1")}

    def listen(self, wanted):
        """Switches the polling of all consumers' queues on or off, and waits until it is."""
        client = self.client("lambda")
        for mapping in client.list_event_source_mappings()["EventSourceMappings"]:
            client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=wanted)
        state = "Enabled" if wanted else "Disabled"
        self.until(f"every mapping is {state}", lambda: all(
            mapping["State"] == state for mapping in client.list_event_source_mappings()["EventSourceMappings"]
        ))

    def waiting(self):
        """Messages in the destinations' queues, visible or not."""
        sqs, names = self.client("sqs"), ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        depths = [sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"] for url in self.now["queues"].values()]
        return sum(int(depth[name]) for depth in depths for name in names)

    def finish(self):
        """Sends and waits until every job is terminal."""

        def finished():
            self.do("relay")
            return set(self.jobs()) <= {"SUCCEEDED", "DEAD"}

        self.until("every job is terminal", finished)

    def until(self, what, holds, patience_s=PATIENCE_S):
        """Waits until `holds()`; fails naming `what`."""
        deadline = time.monotonic() + patience_s
        while not holds():
            if time.monotonic() > deadline:
                raise Failed(f"waited {patience_s} s for: {what}; jobs are {self.jobs()}")
            time.sleep(0.2)
