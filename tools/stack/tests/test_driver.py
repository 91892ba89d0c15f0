"""The driver's own parts, without servers."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tools.stack import prepare, process, state


def statement(text, column="Int8"):
    return {"query": text, "describe": {"columns": [column]}}


def folder_of(where, **statements):
    folder = Path(tempfile.mkdtemp(dir=where))
    for name, content in statements.items():
        (folder / f"query-{name}.json").write_text(json.dumps(content))
    return folder


class Statements(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name

    def test_equal_folders_have_no_difference_whatever_their_layout(self):
        committed = folder_of(self.scratch, a=statement("select 1"))
        fresh = folder_of(self.scratch)
        (fresh / "query-a.json").write_text(json.dumps(statement("select 1"), indent=8))

        self.assertEqual(prepare.differences(committed, fresh), [])

    def test_missing_unused_and_changed_statements_are_named(self):
        committed = folder_of(self.scratch, old=statement("select 1"), same=statement("select 3"))
        fresh = folder_of(self.scratch, new=statement("\n  -- claim\n  select 2"), same=statement("select 3", "Text"))

        faults = prepare.differences(committed, fresh)

        self.assertEqual(
            [" ".join(fault.split()) for fault in faults],
            ["missing: -- claim select 2", "unused: select 1", "changed: select 3"],
        )

    def test_sources_get_their_times_back_unless_they_were_edited(self):
        untouched, edited = Path(self.scratch) / "a.rs", Path(self.scratch) / "b.rs"
        for file in (untouched, edited):
            file.write_text("")
            os.utime(file, (1, 1))

        with prepare._looking_changed({untouched, edited}):
            self.assertGreater(untouched.stat().st_mtime, 1)
            os.utime(edited, (2, 2))

        self.assertEqual((untouched.stat().st_mtime, edited.stat().st_mtime), (1, 2))


def _variable(pid):
    """The variable that tells a sleeper, once it has become one."""
    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next((variable for variable in variables if variable.startswith(b"FUNCTION=")), None)


class Processes(unittest.TestCase):
    def start(self):
        identity = process.start([sys.executable, "-c", "import time; time.sleep(60)"], os.devnull)
        self.addCleanup(process.end, identity)
        return identity

    def test_process_we_started_is_alive_until_it_is_ended(self):
        identity = self.start()
        self.assertTrue(process.alive(identity))

        process.end(identity)

        self.assertFalse(process.alive(identity))

    def test_process_that_got_the_same_id_later_is_not_ended(self):
        identity = self.start()

        process.end({**identity, "started": "another instant"})

        self.assertTrue(process.alive(identity))

    def test_only_children_that_have_the_variable_are_killed(self):
        with tempfile.NamedTemporaryFile("r") as log:
            sleepers = "FUNCTION=mail sleep 60 & FUNCTION=fax sleep 60 & echo $$ $!; wait"
            parent = process.start(["sh", "-c", sleepers], log.name)
            self.addCleanup(process.end, parent)
            process.wait_until(lambda: Path(log.name).read_text().strip(), parent, log.name, "sh")
            shell, fax = map(int, Path(log.name).read_text().split())
            process.wait_until(lambda: _variable(fax) == b"FUNCTION=fax", parent, log.name, "sleep")

            self.assertEqual(process.kill_children(shell, "FUNCTION", "mail"), 1)
            self.assertEqual(process.kill_children(shell, "FUNCTION", "mail"), 0)

            self.assertIsNotNone(process.started_at(fax))

    def test_children_of_an_ended_process_end_with_it(self):
        with tempfile.NamedTemporaryFile("r") as log:
            parent = process.start(["sh", "-c", "sleep 60 & echo $!; wait"], log.name)
            self.addCleanup(process.end, parent)
            process.wait_until(lambda: Path(log.name).read_text().strip(), parent, log.name, "sh")
            child = int(Path(log.name).read_text())

            process.end(parent)

            self.assertIsNone(process.started_at(child))


class State(unittest.TestCase):
    def test_nothing_runs_where_nothing_was_saved(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(state.running(state.load(Path(folder) / "stack.json")), {"postgres": False, "emulator": False})


class CommandLine(unittest.TestCase):
    def test_unknown_command_shows_the_commands_and_fails(self):
        shown = subprocess.run([sys.executable, "-m", "tools.stack", "dance"], capture_output=True, text=True, check=False)

        self.assertEqual(shown.returncode, 2)
        self.assertIn("run -- COMMAND", shown.stdout)


if __name__ == "__main__":
    unittest.main()
