"""`sam deploy --guided` asks nothing that the documents do not explain."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

from tools.stack import deploy, tools
from tools.stack.paths import PROJECT, TEMPLATE

from .translated import whole


QUESTION = re.compile(r"^\s*(?P<parameter>Parameter )?(?P<asked>[A-Z][A-Za-z ]+?)(?: \[.*?\])?:", flags=re.MULTILINE)


class Guided(unittest.TestCase):
    def test_every_question_is_explained(self):
        parameters, others = self.questions()
        self.assertEqual(sorted(parameters), sorted(whole()["Parameters"]))  # and test_pages has a page of them
        self.assertGreater(len(others), 6)
        explained = (PROJECT / "docs/deploy.md").read_text()
        for asked in others:
            self.assertIn(asked, explained)

    def questions(self):
        """The parameters and what else it asks for, when all is answered by Enter but what must be said."""
        with tempfile.TemporaryDirectory() as folder:
            for file in (TEMPLATE, TEMPLATE.with_name("samconfig.toml")):
                shutil.copy(file, folder)
            # Nobody answers there: it ends once every question is asked.
            nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", **deploy.NOWHERE}
            environment = {**os.environ, **nowhere, "PATH": tools.path_first(), "SAM_CLI_TELEMETRY": "0"}
            answers = "\n".join(["", "", "none", *([""] * 80)])
            shown = subprocess.run(
                [tools.tool("sam"), "deploy", "--guided"],
                input=answers, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
            ).stdout  # fmt: skip
        found = [(bool(match["parameter"]), match["asked"]) for match in QUESTION.finditer(shown.replace("\t", "\n"))]
        return [asked for is_one, asked in found if is_one], [asked for is_one, asked in found if not is_one and asked not in SAYS]


SAYS = {"Looking for config file", "Reading default arguments  ", "Looking for resources needed for deployment"}
"""What it says, and does not ask."""


if __name__ == "__main__":
    unittest.main()
