"""Network: none, or a VPC with what a private subnet needs."""

import unittest

from .translated import SECRET, VPC, properties

IN_VPC = {**SECRET, **VPC}


class Network(unittest.TestCase):
    def test_without_a_vpc_nothing_of_a_network_is_made(self):
        self.assertFalse(properties("AWS::EC2::SecurityGroup"))
        self.assertFalse(properties("AWS::EC2::VPCEndpoint"))
        for name, function in properties("AWS::Lambda::Function").items():
            with self.subTest(name):
                self.assertNotIn("VpcConfig", function)

    def test_with_a_vpc_every_function_is_in_it(self):
        for name, function in properties("AWS::Lambda::Function", **IN_VPC).items():
            with self.subTest(name):
                self.assertEqual(function["VpcConfig"]["SecurityGroupIds"], [{"Ref": "FunctionSecurityGroup"}])

    def test_private_subnet_reaches_sqs_secrets_and_s3(self):
        endpoints = properties("AWS::EC2::VPCEndpoint", **IN_VPC)
        reached = {name: part["ServiceName"]["Fn::Sub"].rpartition(".")[2] for name, part in endpoints.items()}
        self.assertEqual(sorted(reached.values()), ["s3", "secretsmanager", "sqs"])
        self.assertEqual(endpoints["S3Endpoint"]["VpcEndpointType"], "Gateway")

    def test_endpoints_are_left_out_where_the_vpc_has_its_own(self):
        self.assertFalse(properties("AWS::EC2::VPCEndpoint", **IN_VPC, CreateVpcEndpoints="false"))

    def test_database_lets_in_the_functions_and_nobody_else(self):
        (rule,) = properties("AWS::EC2::SecurityGroupIngress", **IN_VPC).values()
        self.assertEqual(rule["SourceSecurityGroupId"], {"Ref": "FunctionSecurityGroup"})
        self.assertEqual((rule["GroupId"], rule["FromPort"]), ("sg-1", 5432))

    def test_migration_waits_for_the_way_to_the_database(self):
        needs = properties("Custom::Schema", **IN_VPC)["Schema"]["Needs"]
        self.assertEqual(needs, [{"Ref": "DatabaseIngress"}, {"Ref": "SecretsManagerEndpoint"}, {"Ref": "S3Endpoint"}])


if __name__ == "__main__":
    unittest.main()
