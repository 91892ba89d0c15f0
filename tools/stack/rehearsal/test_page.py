"""docs/rehearsal.md, command by command: each must succeed and show what the page says it shows."""

import os
import re
import subprocess
import unittest

from tools.stack import servers, tools
from tools.stack.paths import PROJECT

PAGE = PROJECT / "docs/rehearsal.md"
PATIENCE_S = 600


def steps():
    """The page's commands, each with the lines that must be seen in its output."""
    blocks = re.findall(r"^```(sh|expect)\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    for at, (kind, text) in enumerate(blocks):
        if kind == "sh":
            follows = blocks[at + 1] if at + 1 < len(blocks) else ("", "")
            yield text, follows[1].splitlines() if follows[0] == "expect" else []


class Page(unittest.TestCase):
    def test_every_command_on_the_page_does_what_the_page_says(self):
        with servers.temporary() as (now, path):
            environment = {**os.environ, **servers.variables(now, path), "PATH": tools.path_first(), "SAM_CLI_TELEMETRY": "0"}
            for command, expected in steps():
                done = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", command],
                    cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                )  # fmt: skip
                shown = done.stdout + done.stderr
                self.assertEqual(done.returncode, 0, f"{command}\n{shown[-3000:]}")
                for line in expected:
                    self.assertIn(line, shown, command)


if __name__ == "__main__":
    unittest.main()
