"""Templates that are written for pipelines of one's own. Runs in the tools' virtual environment."""

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

from tools.stack import filled, scaffold, template, tools
from tools.stack.paths import PROJECT
from tools.stack.say import Failed
from tools.stack.tests.template import settings
from tools.stack.tests.template.translated import queue_of

NOT_OF_A_TRIAL = {
    "TAILCAR_CONFIG",  # that of the first tenant
    *("DATABASE_SECRET_ARN", "DATABASE_IAM_USER", "DATABASE_HOST", "DATABASE_PORT", "DATABASE_NAME"),
}

ORDERS = PROJECT / "examples/orders/template.yaml"


def of(kind, translated):
    found = filled.resources(translated, {})
    return {name: resource["Properties"] for name, resource in found.items() if resource["Type"] == kind}


class Template(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "template.yaml"
        self.file.write_text(scaffold.template("shop", ["mail", "big-orders"]))
        self.translated = template.translated(self.file)

    def test_the_example_is_as_it_was_written(self):
        self.assertEqual(ORDERS.read_text(), scaffold.template("orders", ["receipts", "webhooks"]))

    def test_linter_finds_nothing(self):
        shown = self.file.with_suffix(".json")
        shown.write_text(json.dumps(self.translated))
        command = [tools.tool("cfn-lint"), "--regions", "us-east-1", "--", shown]
        linted = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual((linted.returncode, linted.stdout), (0, ""))

    def test_each_destination_has_a_consumer_and_its_dead_letters_a_judge(self):
        mapped = {queue_of(mapping) for mapping in of("AWS::Lambda::EventSourceMapping", self.translated).values()}
        self.assertEqual(mapped, {"MailQueue", "MailDeadLetterQueue", "BigOrdersQueue", "BigOrdersDeadLetterQueue"})

    def test_functions_have_every_variable_that_their_settings_read(self):
        for name, function in of("AWS::Lambda::Function", self.translated).items():
            read = settings.read_by(name if name in settings.SETTINGS else "NewsConsumerFunction")
            for variable in sorted(read - NOT_OF_A_TRIAL):
                with self.subTest(f"{name}: {variable}"):
                    self.assertIn(variable, function["Environment"]["Variables"])

    def test_times_fit_in_each_profile(self):
        for profile, times in self.translated["Mappings"]["Times"].items():
            with self.subTest(profile):
                self.assertLess(times["ConsumerTimeout"] + times["LeaseMargin"], times["Visibility"])
                self.assertLessEqual(6 * times["ConsumerTimeout"], times["Visibility"])
                self.assertLessEqual(times["Visibility"], times["ReconcilerDelay"])

    def test_name_that_is_none_is_refused(self):
        for names in (["Mail"], ["mail_2"], ["a" * 31], ["mail", "mail"], []):
            with self.subTest(names), self.assertRaises(Failed):
                scaffold.template("shop", names)


if __name__ == "__main__":
    unittest.main()
