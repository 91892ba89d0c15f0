"""A fresh deploy: every function works with its role's rights alone, and the alarms see what it emits."""

import json
import unittest

from tools.stack import rehearse
from tools.stack.paths import PROJECT

from . import emitted, session
from .deployment import fresh

TODAY = rehearse.BUILT
SCHEDULED = ("reconciler", "sweeper", "janitor", "monitor")


def setUpModule():
    global STACK, _OPEN
    _OPEN = fresh(TODAY)
    STACK = _OPEN.__enter__()
    unittest.addModuleCleanup(_OPEN.__exit__, None, None, None)
    STACK.do("collector", session.replay(0, session.LENGTH_MIN - 1))
    STACK.finish()
    for function in SCHEDULED:
        STACK.do(function)


class Pipeline(unittest.TestCase):
    def test_everything_that_was_collected_is_done_and_explained(self):
        self.assertEqual(set(STACK.jobs()), {"SUCCEEDED"})
        self.assertEqual(STACK.count("select count(*) from collection_window"), session.LENGTH_MIN)
        self.assertEqual(STACK.count("select count(*) from price_trigger"), 1)
        self.assertEqual(STACK.count("select count(*) from explanation"), 1)
        self.assertGreater(STACK.count("select count(*) from news_finding"), 0)

    def test_each_function_has_a_bootstrap_of_its_own(self):
        functions = STACK.client("lambda").list_functions()["Functions"]
        self.assertEqual(len({function["CodeSha256"] for function in functions}), len(functions))

    def test_each_function_answers_its_event_file(self):
        for file in sorted((PROJECT / "docs/events").glob("*.json")):
            with self.subTest(file.stem):
                answer, failed = STACK.invoke(file.stem, json.loads(file.read_text()))
                # A message without its job fails, alone or as the whole of its batch; that is its answer.
                self.assertTrue(not failed or "consumer" in file.stem, answer)


class Alarms(unittest.TestCase):
    def test_each_alarm_watches_a_metric_in_an_exact_dimension_set_that_this_run_emitted(self):
        seen = {point.series for point in emitted.points(STACK.now)}
        for alarm in self.alarms():
            with self.subTest(alarm["AlarmName"]):
                self.assertIn(emitted.series_of(alarm), seen)

    def test_dead_job_is_told_to_whoever_listens_at_the_topic(self):
        inbox = self.subscribe()
        STACK.rows("update job set status = 'DEAD', dead_reason = 'DLQ' where destination = 'explain'")
        self.addCleanup(STACK.rows, "update job set status = 'SUCCEEDED', dead_reason = null where destination = 'explain'")
        STACK.do("monitor")

        (alarm,) = [alarm for alarm in self.alarms() if "ExplainDeadJobs" in alarm["AlarmName"]]
        self.forward(emitted.series_of(alarm))

        message = self.receive(inbox)
        self.assertEqual((message["AlarmName"], message["NewStateValue"]), (alarm["AlarmName"], "ALARM"))
        self.assertIn("ALARM", [each["StateValue"] for each in self.alarms() if each["AlarmName"] == alarm["AlarmName"]])

    def alarms(self):
        return STACK.client("cloudwatch").describe_alarms(MaxRecords=100)["MetricAlarms"]

    def subscribe(self):
        """A queue that gets what the topic gets."""
        sqs, sns = STACK.client("sqs"), STACK.client("sns")
        inbox = sqs.create_queue(QueueName="inbox")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=inbox, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        (topic,) = [part["TopicArn"] for part in sns.list_topics()["Topics"] if part["TopicArn"].endswith("-alarms")]
        allow = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": arn}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
        sqs.set_queue_attributes(QueueUrl=inbox, Attributes={"Policy": policy})
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        return inbox

    def forward(self, series):
        """Hands the newest value of one series to CloudWatch, as CloudWatch Logs does on AWS with every EMF line."""
        newest = [point for point in emitted.points(STACK.now) if point.series == series][-1]
        dimensions = [{"Name": name, "Value": value} for name, value in sorted(newest.dimensions)]
        data = {"MetricName": newest.metric, "Dimensions": dimensions, "Value": newest.value}
        STACK.client("cloudwatch").put_metric_data(Namespace=newest.namespace, MetricData=[data])

    def receive(self, inbox):
        received = []

        def arrived():
            self.alarms()  # the emulator looks at its alarms when it is asked about them
            received.extend(STACK.client("sqs").receive_message(QueueUrl=inbox, WaitTimeSeconds=1).get("Messages", []))
            return received

        STACK.until("the alarm's message", arrived)
        return json.loads(json.loads(received[0]["Body"])["Message"])


if __name__ == "__main__":
    unittest.main()
