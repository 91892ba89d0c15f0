"""How a page is read, without following it."""

import tempfile
import unittest
from pathlib import Path

from tools.stack import walk
from tools.stack.paths import PROJECT
from tools.stack.say import Failed

PAGE = """
In `src/lib.rs`:

```rust
//! Nothing.
```

```sh
echo 1
```

It says:

```text
1
```
"""


class Page(unittest.TestCase):
    def follow(self, page):
        with tempfile.TemporaryDirectory() as folder:
            walk._follow(walk.blocks(page), Path(folder))
            return {file.name: file.read_text() for file in Path(folder).rglob("*") if file.is_file()}

    def test_block_is_a_file_a_command_or_what_it_says(self):
        found = [(block.language, block.file) for block in walk.blocks(PAGE)]
        self.assertEqual(found, [("rust", "src/lib.rs"), ("sh", None), ("text", None)])
        self.assertEqual(self.follow(PAGE), {"lib.rs": "//! Nothing.\n"})

    def test_output_that_is_not_as_the_page_says_fails(self):
        with self.assertRaisesRegex(Failed, "the page says"):
            self.follow(PAGE.replace("echo 1", "echo 2"))

    def test_command_that_fails_fails_the_page(self):
        with self.assertRaisesRegex(Failed, "ended with 3"):
            self.follow(PAGE.replace("echo 1", "exit 3"))

    def test_file_without_a_name_is_a_fault_of_the_page(self):
        with self.assertRaisesRegex(Failed, "no line names the file"):
            walk.blocks(PAGE.replace("`src/lib.rs`", "src/lib.rs"))

    def test_extending_can_be_read(self):
        files = [block.file for block in walk.blocks((PROJECT / "docs/extending.md").read_text()) if block.file]
        self.assertIn("examples/greetings/src/lib.rs", files)


if __name__ == "__main__":
    unittest.main()
