"""Queues and their mappings: what they keep, how often they deliver, who reads them."""

import json
import unittest

from .translated import DESTINATIONS, dead_letter_of, properties, queue_of, sources, whole

MAX_ATTEMPTS = 8
"""The default of the job types; a message must outlive them."""

DAY_S = 24 * 60 * 60


class Queues(unittest.TestCase):
    def test_dead_letter_queue_keeps_a_message_longer_than_its_source(self):
        queues = properties("AWS::SQS::Queue")
        for name, queue in sources().items():
            with self.subTest(name):
                self.assertLess(queue["MessageRetentionPeriod"], queues[dead_letter_of(queue)]["MessageRetentionPeriod"])

    def test_job_outlives_every_message_about_it(self):
        kept = whole()["Mappings"]["Retention"]["Seconds"]
        shortest_days = whole()["Parameters"]["RetentionDays"]["MinValue"]
        self.assertGreater(shortest_days * DAY_S, kept["Queue"] + kept["DeadLetterQueue"])

    def test_message_is_delivered_more_often_than_its_job_is_tried(self):
        for name, queue in sources().items():
            with self.subTest(name):
                self.assertGreater(queue["RedrivePolicy"]["maxReceiveCount"], MAX_ATTEMPTS + 2)

    def test_every_queue_takes_one_mebibyte_and_is_encrypted(self):
        for name, queue in properties("AWS::SQS::Queue").items():
            with self.subTest(name):
                self.assertEqual(queue["MaximumMessageSize"], 1024 * 1024)
                self.assertTrue(queue["SqsManagedSseEnabled"])


class Mappings(unittest.TestCase):
    def test_every_mapping_reports_single_failures_and_bounds_its_concurrency(self):
        for name, mapping in properties("AWS::Lambda::EventSourceMapping").items():
            with self.subTest(name):
                self.assertEqual(mapping["FunctionResponseTypes"], ["ReportBatchItemFailures"])
                self.assertGreaterEqual(mapping["ScalingConfig"]["MaximumConcurrency"], 2)

    def test_every_dead_letter_queue_is_judged(self):
        dead = {dead_letter_of(queue) for queue in sources().values()}
        read = {queue_of(mapping) for mapping in properties("AWS::Lambda::EventSourceMapping").values()}
        self.assertLessEqual(dead, read)

    def test_each_destination_of_the_relay_is_one_mapped_queue(self):
        urls = self.urls("RelayFunction", "QUEUE_URLS")
        self.assertEqual(set(urls), set(DESTINATIONS))
        self.assertEqual(sorted(urls.values()), sorted(sources()))

    def test_dead_letter_and_monitor_know_each_destination_s_dead_letter_queue(self):
        wanted = {name: f"{name.capitalize()}DeadLetterQueue" for name in DESTINATIONS}
        self.assertEqual(self.urls("DeadLetterFunction", "QUEUE_URLS"), wanted)
        self.assertEqual(self.urls("MonitorFunction", "DEAD_LETTER_QUEUE_URLS"), wanted)

    def urls(self, function, variable):
        """Destination and logical name of the queue, from a function's environment."""
        text = properties("AWS::Lambda::Function")[function]["Environment"]["Variables"][variable]["Fn::Sub"]
        return {destination: reference.strip("${}") for destination, reference in json.loads(text).items()}


if __name__ == "__main__":
    unittest.main()
