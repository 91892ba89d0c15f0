"""Relations that must hold in the template as AWS sees it, for each profile of time settings."""

import json
import re
import unittest

from tools.stack import template
from tools.stack.paths import PROJECT

MAX_ATTEMPTS = 8
"""The default of the job types; a message must outlive them."""


def setUpModule():
    global TEMPLATE
    TEMPLATE = template.translated()


def each_profile():
    return TEMPLATE["Mappings"]["Times"].items()


def resources(kind, **parameters):
    """Resources of a type by name, with parameters and mappings filled in."""
    return {
        name: template.filled_in(resource, TEMPLATE, parameters)
        for name, resource in TEMPLATE["Resources"].items()
        if resource["Type"] == kind
    }


def properties(kind, **parameters):
    return {name: resource["Properties"] for name, resource in resources(kind, **parameters).items()}


def source_queue(mapping):
    return mapping["EventSourceArn"]["Fn::GetAtt"][0]


class Times(unittest.TestCase):
    def test_timeout_is_shorter_than_lease_and_lease_shorter_than_visibility_and_that_not_longer_than_the_reconciler_waits(self):
        for profile, times in each_profile():
            with self.subTest(profile):
                lease = times["ConsumerTimeout"] + times["LeaseMargin"]
                self.assertLess(times["ConsumerTimeout"], lease)
                self.assertLess(lease, times["Visibility"])
                self.assertLessEqual(times["Visibility"], times["ReconcilerDelay"])

    def test_mapped_queue_hides_a_message_for_six_timeouts_of_its_function(self):
        for profile, _ in each_profile():
            queues = properties("AWS::SQS::Queue", Profile=profile)
            functions = properties("AWS::Lambda::Function", Profile=profile)
            for name, mapping in properties("AWS::Lambda::EventSourceMapping", Profile=profile).items():
                with self.subTest(f"{name}, {profile}"):
                    timeout = functions[mapping["FunctionName"]["Ref"]]["Timeout"]
                    self.assertGreaterEqual(queues[source_queue(mapping)]["VisibilityTimeout"], 6 * timeout)

    def test_functions_are_told_the_times_that_are_set(self):
        for profile, times in each_profile():
            for name, function in properties("AWS::Lambda::Function", Profile=profile).items():
                with self.subTest(f"{name}, {profile}"):
                    told = function["Environment"]["Variables"]
                    self.assertEqual(told["FUNCTION_TIMEOUT_SECONDS"], function["Timeout"])
                    self.assertEqual(told["VISIBILITY_TIMEOUT_SECONDS"], times["Visibility"])

    def test_window_closes_inside_its_minute_and_a_relay_lingers_less_than_its_timeout(self):
        linger = TEMPLATE["Parameters"]["RelayLingerSeconds"]
        for profile, times in each_profile():
            with self.subTest(profile):
                self.assertLess(times["CollectorTimeout"], 60)
                self.assertLess(linger["MaxValue"], times["RelayTimeout"])

    def test_orphan_is_not_swept_before_its_writer_is_dead(self):
        for profile, times in each_profile():
            with self.subTest(profile):
                self.assertLess(max(times["CollectorTimeout"], times["ConsumerTimeout"]), times["SweepGrace"])


class Queues(unittest.TestCase):
    def dead_letter_of(self, queue):
        return queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]

    def mapped(self):
        """The queues of the destinations; dead-letter queues are mapped too, and have no further one."""
        queues = properties("AWS::SQS::Queue")
        mapped = {source_queue(mapping) for mapping in properties("AWS::Lambda::EventSourceMapping").values()}
        return {name: queue for name, queue in queues.items() if name in mapped and "RedrivePolicy" in queue}

    def test_dead_letter_queue_keeps_a_message_longer_than_its_source(self):
        queues = properties("AWS::SQS::Queue")
        for name, queue in self.mapped().items():
            with self.subTest(name):
                dead = queues[self.dead_letter_of(queue)]
                self.assertLess(queue["MessageRetentionPeriod"], dead["MessageRetentionPeriod"])

    def test_message_is_delivered_more_often_than_its_job_is_tried(self):
        for name, queue in self.mapped().items():
            with self.subTest(name):
                self.assertGreater(queue["RedrivePolicy"]["maxReceiveCount"], MAX_ATTEMPTS + 2)

    def test_every_queue_takes_one_mebibyte_and_is_encrypted(self):
        for name, queue in properties("AWS::SQS::Queue").items():
            with self.subTest(name):
                self.assertEqual(queue["MaximumMessageSize"], 1024 * 1024)
                self.assertTrue(queue["SqsManagedSseEnabled"])

    def test_every_mapping_reports_single_failures_and_bounds_its_concurrency(self):
        for name, mapping in properties("AWS::Lambda::EventSourceMapping").items():
            with self.subTest(name):
                self.assertEqual(mapping["FunctionResponseTypes"], ["ReportBatchItemFailures"])
                self.assertGreaterEqual(mapping["ScalingConfig"]["MaximumConcurrency"], 2)

    def test_every_dead_letter_queue_is_judged(self):
        dead = {self.dead_letter_of(queue) for queue in self.mapped().values()}
        read = {source_queue(mapping) for mapping in properties("AWS::Lambda::EventSourceMapping").values()}
        self.assertLessEqual(dead, read)

    def test_each_destination_of_the_relay_is_one_mapped_queue(self):
        urls = properties("AWS::Lambda::Function")["RelayFunction"]["Environment"]["Variables"]["QUEUE_URLS"]["Fn::Sub"]
        named = [reference.strip("${}") for reference in json.loads(urls).values()]
        self.assertEqual(len(named), len(set(named)))
        self.assertEqual(set(named), set(self.mapped()))


class Functions(unittest.TestCase):
    def test_scheduled_run_is_not_repeated_by_the_scheduler_or_by_lambda(self):
        schedules = properties("AWS::Scheduler::Schedule")
        repeated = properties("AWS::Lambda::EventInvokeConfig")
        self.assertEqual(len(schedules), len(repeated))
        for name, schedule in schedules.items():
            with self.subTest(name):
                self.assertEqual(schedule["Target"]["RetryPolicy"]["MaximumRetryAttempts"], 0)
        for name, config in repeated.items():
            with self.subTest(name):
                self.assertEqual(config["MaximumRetryAttempts"], 0)

    def test_function_writes_to_a_log_group_that_forgets(self):
        groups = properties("AWS::Logs::LogGroup")
        for name, function in properties("AWS::Lambda::Function").items():
            with self.subTest(name):
                self.assertGreater(groups[function["LoggingConfig"]["LogGroup"]["Ref"]]["RetentionInDays"], 0)

    def test_nothing_reserves_concurrency(self):
        for name, function in properties("AWS::Lambda::Function").items():
            with self.subTest(name):
                self.assertNotIn("ReservedConcurrentExecutions", function)

    def test_every_function_has_every_variable_that_its_settings_read(self):
        for name, function in properties("AWS::Lambda::Function").items():
            read = variables_read(*SETTINGS.get(name, CONSUMER))
            self.assertIn("DATABASE_URL", read)
            for variable in sorted(read):
                with self.subTest(f"{name}: {variable}"):
                    self.assertIn(variable, function["Environment"]["Variables"])


class Rights(unittest.TestCase):
    def statements(self):
        for name, role in properties("AWS::IAM::Role").items():
            for policy in role.get("Policies", []):
                for statement in flattened(policy["PolicyDocument"]["Statement"]):
                    yield name, statement

    def test_no_role_may_do_everything_or_to_everything(self):
        for name, statement in self.statements():
            with self.subTest(f"{name}: {statement}"):
                self.assertNotIn("*", as_list(statement["Resource"]))
                self.assertFalse([action for action in as_list(statement["Action"]) if "*" in action])

    def test_no_role_has_a_managed_policy(self):
        for name, role in properties("AWS::IAM::Role").items():
            with self.subTest(name):
                self.assertFalse(role.get("ManagedPolicyArns"))

    def test_artifacts_are_versioned_private_and_reached_by_tls_only(self):
        bucket = properties("AWS::S3::Bucket")["ArtifactBucket"]
        self.assertEqual(bucket["VersioningConfiguration"]["Status"], "Enabled")
        self.assertTrue(all(bucket["PublicAccessBlockConfiguration"].values()))
        (statement,) = properties("AWS::S3::BucketPolicy")["ArtifactBucketPolicy"]["PolicyDocument"]["Statement"]
        self.assertEqual(statement["Effect"], "Deny")
        self.assertEqual(statement["Condition"], {"Bool": {"aws:SecureTransport": False}})


CONSUMER = [("settings.rs", "ConsumerSettings")]
SETTINGS = {
    "CollectorFunction": [("settings.rs", "CollectorSettings")],
    "RelayFunction": [("settings.rs", "RelaySettings"), ("relay/settings.rs", "Settings")],
    "DeadLetterFunction": [("settings/repair.rs", "DeadLetterSettings")],
    "ReconcilerFunction": [("settings/repair.rs", "ReconcilerSettings")],
    "OperatorFunction": [("settings.rs", "Database")],
    "MigratorFunction": [("settings.rs", "Database")],
}
"""The types whose `from_env` a function calls, by the file under shared/runtime/src."""


def variables_read(*types):
    """The variables that these types read and have no default for, those read by the shared reader included."""
    shared = functions_of("settings.rs", "Reader")
    return set().union(*(variables_of(body, shared) for where in types for body in functions_of(*where).values()))


def functions_of(file, type_name):
    """The bodies of a type's functions by name, from its source without tests."""
    code = (PROJECT / "shared/runtime/src" / file).read_text().partition("#[cfg(test)]")[0]
    blocks = re.split(r"^impl(?:<.*>)? (?=\w+)", code, flags=re.MULTILINE)[1:]
    body = "".join(block for block in blocks if re.match(rf"{type_name}\b", block))
    names_and_bodies = re.split(r"\bfn (\w+)", body)[1:]
    return dict(zip(names_and_bodies[::2], names_and_bodies[1::2]))


def variables_of(body, shared):
    """The variables that a function reads, itself or by calling the reader's functions."""
    direct = re.findall(r'\.(?:text|parsed|positive)\("([A-Z_]+)"|optional\("(TAILCAR_CONFIG)"', body)
    called = set(re.findall(r"\b(?:reader|self)\.(\w+)\(", body)) & shared.keys()
    deeper = (variables_of(shared[name], {**shared, name: ""}) for name in called)
    return {name for pair in direct for name in pair if name}.union(*deeper)


def flattened(statements):
    """Statements with both branches of each condition."""
    for statement in statements:
        if "Fn::If" in statement:
            yield from (part for part in statement["Fn::If"][1:] if part != {"Ref": "AWS::NoValue"})
        else:
            yield statement


def as_list(value):
    return value if isinstance(value, list) else [value]


if __name__ == "__main__":
    unittest.main()
