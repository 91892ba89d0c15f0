"""Alarms: which there are, what becomes of missing data, and that each has its page.

That what they watch is what a real run emits is tested on a deployed stack (tools/stack/rehearsal).
"""

import re
import unittest

from tools.stack.paths import PROJECT

from .translated import DESTINATIONS, TRIAL, properties

ALARMS = PROJECT / "docs/alarms.md"


def alarms(**parameters):
    return properties("AWS::CloudWatch::Alarm", **{**TRIAL, **parameters})


def dimensions(alarm):
    """The dimensions beside the stack's name, which every metric has."""
    return {part["Name"]: part["Value"] for part in alarm["Dimensions"] if part["Name"] != "Stack"}


class Alarms(unittest.TestCase):
    def watched(self, metric):
        return [dimensions(alarm) for alarm in alarms().values() if alarm["MetricName"] == metric]

    def test_each_destination_is_watched_for_dead_jobs_and_for_dead_letters(self):
        wanted = [{"Destination": name} for name in DESTINATIONS]
        self.assertEqual(self.watched("DeadJobs"), wanted)
        self.assertEqual(self.watched("DeadLetterDepth"), wanted)

    def test_each_job_type_is_watched_for_its_oldest_unfinished_job(self):
        self.assertEqual(self.watched("OldestUnfinishedJobAgeSeconds"), [{"JobType": name} for name in DESTINATIONS])

    def test_each_scheduled_function_is_watched_for_its_heartbeat(self):
        beating = {f"{beat['Function'].capitalize()}Function" for beat in self.watched("Heartbeat")}
        scheduled = {part["Target"]["Arn"]["Fn::GetAtt"][0] for part in properties("AWS::Scheduler::Schedule").values()}
        self.assertEqual(beating, scheduled)

    def test_function_that_is_not_scheduled_is_not_missed(self):
        self.assertNotIn("SweeperHeartbeatAlarm", alarms(SweeperScheduleState="DISABLED"))

    def test_only_a_missing_heartbeat_breaches(self):
        for name, alarm in alarms().items():
            with self.subTest(name):
                beat = alarm["MetricName"] == "Heartbeat"
                self.assertEqual(alarm["TreatMissingData"], "breaching" if beat else "notBreaching")

    def test_every_alarm_tells_the_topic_when_it_begins_and_when_it_ends(self):
        for name, alarm in alarms().items():
            with self.subTest(name):
                self.assertEqual(alarm["AlarmActions"], [{"Ref": "AlarmTopic"}])
                self.assertEqual(alarm["OKActions"], [{"Ref": "AlarmTopic"}])

    def test_every_alarm_s_metric_has_a_section_that_says_what_to_do(self):
        sections = set(re.findall(r"^## (\w+)$", ALARMS.read_text(), flags=re.MULTILINE))
        for name in alarms():
            with self.subTest(name):
                self.assertIn(section_of(name), sections)

    def test_no_section_is_about_an_alarm_that_is_not_there(self):
        sections = set(re.findall(r"^## (\w+)$", ALARMS.read_text(), flags=re.MULTILINE))
        self.assertLessEqual(sections, {section_of(name) for name in alarms()})


def section_of(alarm):
    """Alarms that differ only in their destination, type or function share a section."""
    kinds = ("OldestJob", "DeadJobs", "DeadLetter", "Heartbeat")
    name = alarm.removesuffix("Alarm")
    return next((kind for kind in kinds if name.endswith(kind)), name)


if __name__ == "__main__":
    unittest.main()
