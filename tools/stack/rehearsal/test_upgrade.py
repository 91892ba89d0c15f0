"""An upgrade from the last release with messages in flight, a deploy that fails, a rollback, and the end.

The last release is its own template with its own binaries, built from git.
"""

import unittest

from tools.stack import deploy, rehearse, servers

from tools.stack.say import Failed

from . import release, session
from .deployment import Deployment

TODAY = rehearse.BUILT
NOBODY_LISTENS = "postgres://postgres@127.0.0.1:1/tailcar"


class Upgrade(unittest.TestCase):
    def test_nothing_is_lost_or_done_twice_from_the_last_release_to_this_one_and_back(self):
        with servers.temporary() as (now, path):
            session.put(now)
            stack = Deployment(now, path.parent)
            self.last_release_leaves_messages_in_flight(stack)
            self.deploy_that_cannot_migrate_changes_nothing(stack)
            self.this_release_finishes_what_the_last_one_sent(stack)
            self.last_release_finishes_what_this_one_sent(stack)
            self.deleting_keeps_the_artifacts_and_nothing_else(stack)

    def last_release_leaves_messages_in_flight(self, stack):
        stack.deploy(release.build(), log="last-release")
        stack.do("migrator")
        stack.listen(False)
        stack.do("collector", session.replay(0, 19))
        stack.do("relay")
        self.assertGreaterEqual(stack.waiting(), 20)
        self.assertEqual(set(stack.jobs()), {"PENDING"})

    def deploy_that_cannot_migrate_changes_nothing(self, stack):
        """The database is away for this deploy: it is undone as a whole, and the old functions go on."""
        before = stack.client("lambda").get_function_configuration(FunctionName="tailcar-relay")["CodeSha256"]
        with self.assertRaises(Failed):
            stack.deploy(TODAY, {"DatabaseUrl": NOBODY_LISTENS}, log="failed-upgrade")
        described = stack.client("cloudformation").describe_stacks(StackName=deploy.STACK_NAME)["Stacks"][0]
        self.assertEqual(described["StackStatus"], "UPDATE_ROLLBACK_COMPLETE")
        after = stack.client("lambda").get_function_configuration(FunctionName="tailcar-relay")["CodeSha256"]
        self.assertEqual(after, before)
        stack.do("relay")

    def this_release_finishes_what_the_last_one_sent(self, stack):
        stack.deploy(TODAY, log="upgrade")
        stack.listen(True)
        stack.finish()
        self.assertEqual(set(stack.jobs()), {"SUCCEEDED"})
        self.everything_is_there_once(stack, windows=20)

    def last_release_finishes_what_this_one_sent(self, stack):
        stack.listen(False)
        stack.do("collector", session.replay(20, session.LENGTH_MIN - 1))
        stack.do("relay")
        self.assertGreaterEqual(stack.waiting(), 20)
        stack.deploy(release.build(), log="rollback")
        self.assertEqual(stack.do("migrator"), '{"applied": []}')
        stack.listen(True)
        stack.finish()
        self.assertEqual(set(stack.jobs()), {"SUCCEEDED"})
        self.everything_is_there_once(stack, windows=session.LENGTH_MIN)
        self.assertEqual(stack.count("select count(*) from price_trigger"), 1)
        self.assertEqual(stack.count("select count(*) from explanation"), 1)

    def deleting_keeps_the_artifacts_and_nothing_else(self, stack):
        objects = stack.client("s3").list_objects_v2(Bucket=stack.now["bucket"])["KeyCount"]
        deploy.delete(stack.now, stack.folder / "logs/delete.log")
        self.assertEqual(stack.client("lambda").list_functions()["Functions"], [])
        self.assertEqual(stack.client("sqs").list_queues().get("QueueUrls", []), [])
        self.assertEqual(stack.client("s3").list_objects_v2(Bucket=stack.now["bucket"])["KeyCount"], objects)

    def everything_is_there_once(self, stack, windows):
        """Jobs are unique by their id; so are a window's price job and its effects."""
        self.assertEqual(stack.count("select count(*) from collection_window"), windows)
        self.assertEqual(stack.count("select count(*) from job where job_type = 'price'"), windows)
        self.assertEqual(stack.count("select count(*) from outbox_event where status <> 'PUBLISHED'"), 0)
        self.assertEqual(stack.count("select count(*) from quarantined_message"), 0)
        stack.until("every queue is empty", lambda: stack.waiting() == 0)


if __name__ == "__main__":
    unittest.main()
