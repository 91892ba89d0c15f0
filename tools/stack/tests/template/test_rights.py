"""Rights: each role what its function calls, on what it calls it, and nothing else."""

import unittest

from .translated import WAYS, listed, properties

DESCRIBING_NETWORKS = "JoinNetwork"
"""EC2's describing actions take no resource. Lambda itself uses them; a statement denies them to the code."""


def statements(parameters):
    """Every allowing statement of every role and policy, with the name of its owner."""
    for name, role in properties("AWS::IAM::Role", **parameters).items():
        for policy in role.get("Policies", []):
            yield from ((name, statement) for statement in listed(policy["PolicyDocument"]["Statement"]))
    for name, policy in properties("AWS::IAM::ManagedPolicy", **parameters).items():
        yield from ((name, statement) for statement in policy["PolicyDocument"]["Statement"])


class Roles(unittest.TestCase):
    def test_no_role_may_do_everything_or_to_everything(self):
        for way, parameters in WAYS.items():
            for name, statement in statements(parameters):
                with self.subTest(f"{name}, {way}: {statement}"):
                    if statement["Effect"] == "Allow" and name != DESCRIBING_NETWORKS:
                        self.assertNotIn("*", listed(statement["Resource"]))
                        self.assertFalse([action for action in listed(statement["Action"]) if "*" in action])

    def test_what_lambda_needs_for_a_network_is_denied_to_the_functions_code(self):
        policy = properties("AWS::IAM::ManagedPolicy", **WAYS["by secret in a VPC"])[DESCRIBING_NETWORKS]
        allowed, denied = policy["PolicyDocument"]["Statement"]
        self.assertTrue(all(action.startswith("ec2:") for action in allowed["Action"]))
        self.assertEqual((denied["Effect"], denied["Action"]), ("Deny", "ec2:*"))
        self.assertIn("lambda:SourceFunctionArn", denied["Condition"]["ArnLike"])

    def test_no_role_has_a_policy_that_aws_manages(self):
        for way, parameters in WAYS.items():
            own = properties("AWS::IAM::ManagedPolicy", **parameters)
            for name, role in properties("AWS::IAM::Role", **parameters).items():
                for policy in role.get("ManagedPolicyArns", []):
                    with self.subTest(f"{name}, {way}"):
                        self.assertIn(policy["Ref"], own)

    def test_every_function_has_a_role_of_its_own(self):
        roles = [function["Role"]["Fn::GetAtt"][0] for function in properties("AWS::Lambda::Function").values()]
        self.assertEqual(len(roles), len(set(roles)))

    def test_role_may_sign_in_to_the_database_as_its_function_s_user_only(self):
        functions = properties("AWS::Lambda::Function", **WAYS["by IAM"])
        allowed = {
            name: statement["Resource"]["Fn::Sub"].rpartition("/")[2]
            for name, statement in statements(WAYS["by IAM"])
            if statement.get("Action") == "rds-db:connect"
        }
        for name, function in functions.items():
            with self.subTest(name):
                user = function["Environment"]["Variables"].get("DATABASE_IAM_USER")
                self.assertEqual(allowed.get(function["Role"]["Fn::GetAtt"][0]), user)

    def test_only_the_relay_sends_and_only_the_sweeper_deletes_objects(self):
        for action, owner in {"sqs:SendMessage": "RelayRole", "s3:DeleteObject": "SweeperRole"}.items():
            owners = {name for name, statement in statements(WAYS["by secret"]) if action in listed(statement["Action"])}
            self.assertEqual({name for name in owners if not name.endswith("ScheduleRole")}, {owner})


class Artifacts(unittest.TestCase):
    def setUp(self):
        self.bucket = properties("AWS::S3::Bucket")["ArtifactBucket"]

    def test_artifacts_are_versioned_private_and_encrypted(self):
        self.assertEqual(self.bucket["VersioningConfiguration"]["Status"], "Enabled")
        self.assertTrue(all(self.bucket["PublicAccessBlockConfiguration"].values()))
        self.assertIn("BucketEncryption", self.bucket)

    def test_artifacts_are_reached_by_tls_only(self):
        (statement,) = properties("AWS::S3::BucketPolicy")["ArtifactBucketPolicy"]["PolicyDocument"]["Statement"]
        self.assertEqual(statement["Effect"], "Deny")
        self.assertEqual(statement["Condition"], {"Bool": {"aws:SecureTransport": False}})

    def test_reclaimed_object_and_abandoned_upload_do_not_stay_for_ever(self):
        (rule,) = self.bucket["LifecycleConfiguration"]["Rules"]
        self.assertGreater(rule["NoncurrentVersionExpiration"]["NoncurrentDays"], 0)
        self.assertGreater(rule["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"], 0)
        self.assertNotIn("ExpirationInDays", rule)


if __name__ == "__main__":
    unittest.main()
