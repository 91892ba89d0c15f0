"""Every right of every role is needed: without it, the function that has it says so, and no other does.

The emulator refuses what a role does not allow, in AWS's own words. What Lambda and the scheduler do in a
role's name (polling a queue, writing a log) the emulator does in its own; those rights are listed, so that a
new right is either tried or explained.
"""

import json
import unittest
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Callable

from tools.stack import aws, rehearse
from tools.stack.paths import PROJECT

from . import session
from .deployment import fresh

IN_THE_NAME_OF_THE_ROLE = {
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    ("consumer", "sqs:GetQueueAttributes"),
}
"""Lambda's poller and its log driver use them; the function's own code never does."""

NOT_TOLD_APART = {
    ("news-consumer", "s3:ListBucket"): "the emulator answers 404 for a missing object with and without it",
    ("relay", "sqs:GetQueueAttributes"): "without it the relay reckons with the longest message there is, and says nothing",
    ("sweeper", "s3:GetBucketVersioning"): "asked only when something is deleted, which a dry run does not",
    ("sweeper", "s3:DeleteObjectVersion"): "needed for what is deleted by version only, which a dry run is not",
    ("sweeper", "s3:DeleteObject"): "tried by the sweeper's own test against the emulator",
    ("sweeper", "s3:PutObject"): "the marker is written once, at the first run",
}


READ_THE_CONFIGURATION = ("price-consumer", "explain-consumer", "dead-letter", "monitor")
"""And read nothing else from S3. They do it when they start."""


@dataclass(frozen=True)
class Trial:
    """How to make a function use a right."""

    function: str
    action: str
    provoke: Callable[[], object]


def setUpModule():
    global STACK
    opened = fresh(rehearse.BUILT)
    STACK = opened.__enter__()
    unittest.addModuleCleanup(opened.__exit__, None, None, None)
    STACK.do("collector", session.replay(0, 0))
    STACK.finish()
    STACK.do("sweeper")


class Rights(unittest.TestCase):
    def test_function_without_one_of_its_rights_says_which(self):
        for trial in trials():
            with self.subTest(f"{trial.function}: {trial.action}"), without(trial.function, trial.action):
                before = len(log_of(trial.function))
                answer = str(trial.provoke()).replace("\\", "")
                refused = f"not authorized to perform: {trial.action}"
                STACK.until(f"{trial.function} says that it is {refused}", lambda: any(
                    refused in text for text in (answer, *log_of(trial.function)[before:])
                ), patience_s=20)

    def test_every_right_of_every_function_is_tried_or_explained(self):
        tried = {(trial.function, trial.action) for trial in trials()}
        for function in STACK.now["functions"]:
            for action in rights_of(function):
                kind = "consumer" if function.endswith("consumer") or function == "dead-letter" else function
                known = (function, action) in tried or (function, action) in NOT_TOLD_APART
                with self.subTest(f"{function}: {action}"):
                    self.assertTrue(known or {action, (kind, action)} & IN_THE_NAME_OF_THE_ROLE)


def trials():
    """One for each right that a function's own code uses."""
    news = lambda: (session.put_news(STACK.now, uuid.uuid4().hex), STACK.invoke("collector", session.replay(0, 0)))
    return [
        Trial("collector", "s3:PutObject", news),
        Trial("collector", "s3:ListBucket", news),
        Trial("collector", "s3:GetObject", news),
        Trial("relay", "sqs:SendMessage", lambda: (news(), STACK.invoke("relay"))),
        Trial("news-consumer", "s3:GetObject", lambda: (news(), STACK.invoke("relay"), STACK.invoke("relay"))),
        *(Trial(f"{name}-consumer", "sqs:ChangeMessageVisibility", lambda name=name: meet_a_held_job(name)) for name in STACK.now["queues"]),
        Trial("dead-letter", "sqs:ChangeMessageVisibility", lambda: STACK.invoke("dead-letter", event_of("dead-letter"))),
        Trial("monitor", "sqs:GetQueueAttributes", lambda: STACK.invoke("monitor")),
        Trial("sweeper", "s3:ListBucket", lambda: STACK.invoke("sweeper")),
        Trial("sweeper", "s3:GetObject", lambda: STACK.invoke("sweeper")),
        *(Trial(name, "s3:GetObject", lambda name=name: (STACK.restart(name), STACK.invoke(name))) for name in READ_THE_CONFIGURATION),
    ]


def meet_a_held_job(destination):
    """Delivers a message of a job that somebody else holds: the consumer hides it until the lease ends."""
    job_id = uuid.uuid4().hex * 2
    STACK.rows(
        "insert into job (job_id, job_type, destination, status, attempt_count, max_attempts, payload, claimed_by, lease_until)"
        f" values ('{job_id}', '{destination}', '{destination}', 'CLAIMED', 1, 8, '{{}}', gen_random_uuid(), now() + interval '1 minute')"
    )
    event = event_of(f"{destination}-consumer")
    body = {**json.loads(event["Records"][0]["body"]), "job_id": job_id, "event_id": f"{destination}:{job_id}:0"}
    event["Records"][0]["body"] = json.dumps(body, separators=(",", ":"))
    answer = STACK.invoke(f"{destination}-consumer", event)
    STACK.rows(f"delete from job where job_id = '{job_id}'")
    return answer


def event_of(name):
    return json.loads((PROJECT / f"docs/events/{name}.json").read_text())


def log_of(function):
    return list(aws.follow(STACK.now, STACK.now["functions"][function], still_wanted=lambda: False))


def rights_of(function):
    """The actions of a function's role, its own and those of policies that it shares."""
    role = role_of(function)
    return {action for _, document in [*inline(role), *shared(role)] for part in document["Statement"] for action in actions(part)}


@contextmanager
def without(function, action):
    """Takes one action from a function's role for the block, and the policies it shares that allow it."""
    iam, role = STACK.client("iam"), role_of(function)
    before = inline(role)
    detached = [arn for arn, document in shared(role) if any(action in actions(part) for part in document["Statement"])]
    for arn in detached:
        iam.detach_role_policy(RoleName=role, PolicyArn=arn)
    for name, document in before:
        left = [{**part, "Action": [each for each in actions(part) if each != action]} for part in document["Statement"]]
        changed = {**document, "Statement": [part for part in left if part["Action"]]}
        iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(changed))
    try:
        yield
    finally:
        for name, document in before:
            iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(document))
        for arn in detached:
            iam.attach_role_policy(RoleName=role, PolicyArn=arn)


def inline(role):
    """A role's own policies: name and document."""
    iam = STACK.client("iam")
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    return [(name, iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]) for name in names]


def shared(role):
    """The policies that a role shares with others: ARN and document."""
    iam = STACK.client("iam")
    arns = [attached["PolicyArn"] for attached in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]]
    newest = [(arn, iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]) for arn in arns]
    return [(arn, iam.get_policy_version(PolicyArn=arn, VersionId=at)["PolicyVersion"]["Document"]) for arn, at in newest]


def role_of(function):
    described = STACK.client("lambda").get_function_configuration(FunctionName=STACK.now["functions"][function])
    return described["Role"].rpartition("/")[2]


def actions(statement):
    return statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]


if __name__ == "__main__":
    unittest.main()
