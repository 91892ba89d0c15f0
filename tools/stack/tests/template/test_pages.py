"""Pages that describe the template say what it says."""

import re
import unittest

from tools.stack import migrations
from tools.stack.paths import PROJECT

from .translated import properties, whole

DEPLOY = (PROJECT / "docs/deploy.md").read_text()


class Parameters(unittest.TestCase):
    def rows(self):
        """The rows of the page's table of parameters: name and default."""
        return dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", DEPLOY, flags=re.MULTILINE))

    def test_page_names_every_parameter_and_no_other(self):
        self.assertEqual(sorted(self.rows()), sorted(whole()["Parameters"]))

    def test_page_says_each_parameter_s_default(self):
        for name, shown in self.rows().items():
            with self.subTest(name):
                default = whole()["Parameters"][name].get("Default")
                self.assertEqual(shown, "empty" if default == "" else f"`{default}`")

    def test_every_parameter_is_described_and_has_a_safe_default(self):
        for name, declared in whole()["Parameters"].items():
            with self.subTest(name):
                self.assertTrue(declared["Description"].endswith("."))
                self.assertIn("Default", declared)

    def test_every_parameter_is_in_a_group_of_the_console(self):
        groups = whole()["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
        self.assertEqual(sorted(name for group in groups for name in group["Parameters"]), sorted(whole()["Parameters"]))


class Migrations(unittest.TestCase):
    def test_migrator_is_called_again_when_the_migrations_change(self):
        told = properties("Custom::Migration")["Migration"]["Migrations"]
        self.assertEqual(told, migrations.digest(), "`make prepare` writes it")


if __name__ == "__main__":
    unittest.main()
