"""Pages that describe the template say what it says."""

import unittest

from tools.stack import cost, migrations, parameters
from tools.stack.paths import PROJECT

from .translated import properties, whole


class Parameters(unittest.TestCase):
    def test_page_says_what_the_template_says(self):
        self.assertEqual(parameters.PAGE.read_text(), parameters.page(), "`python3 -m tools.stack parameters` writes it")

    def test_every_parameter_is_described_and_has_a_safe_default(self):
        for name, declared in whole()["Parameters"].items():
            with self.subTest(name):
                self.assertTrue(declared["Description"].endswith("."))
                self.assertIn("Default", declared)

    def test_every_parameter_is_in_a_group_of_the_console(self):
        groups = whole()["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
        self.assertEqual(sorted(name for group in groups for name in group["Parameters"]), sorted(whole()["Parameters"]))


class Cost(unittest.TestCase):
    def test_page_has_the_table_that_the_arithmetic_gives(self):
        self.assertIn(cost.table(), (PROJECT / "docs/cost.md").read_text(), "`python3 -m tools.stack.cost` prints it")

    def test_alarms_are_counted_as_they_are(self):
        self.assertEqual(len(properties("AWS::CloudWatch::Alarm")), cost.ALARMS)


class Migrations(unittest.TestCase):
    def test_migrator_is_called_again_when_the_migrations_change(self):
        told = properties("Custom::Schema")["Schema"]["SchemaHash"]
        self.assertEqual(told, migrations.digest(), "`make prepare` writes it")


if __name__ == "__main__":
    unittest.main()
