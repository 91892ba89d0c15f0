"""Time settings that must fit each other, in each profile."""

import unittest

from .translated import each_profile, properties, queue_of, whole


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
                    self.assertGreaterEqual(queues[queue_of(mapping)]["VisibilityTimeout"], 6 * timeout)

    def test_functions_are_told_the_times_that_are_set(self):
        for profile, times in each_profile():
            for name, function in properties("AWS::Lambda::Function", Profile=profile).items():
                with self.subTest(f"{name}, {profile}"):
                    told = function["Environment"]["Variables"]
                    self.assertEqual(told["FUNCTION_TIMEOUT_SECONDS"], function["Timeout"])
                    self.assertEqual(told["VISIBILITY_TIMEOUT_SECONDS"], times["Visibility"])

    def test_window_closes_inside_its_minute_and_a_relay_lingers_less_than_its_timeout(self):
        linger = whole()["Parameters"]["RelayLingerSeconds"]
        for profile, times in each_profile():
            with self.subTest(profile):
                self.assertLess(times["CollectorTimeout"], 60)
                self.assertLess(linger["MaxValue"], times["RelayTimeout"])

    def test_orphan_is_not_swept_before_its_writer_is_dead(self):
        for profile, times in each_profile():
            with self.subTest(profile):
                self.assertLess(max(times["CollectorTimeout"], times["ConsumerTimeout"]), times["SweepGrace"])
