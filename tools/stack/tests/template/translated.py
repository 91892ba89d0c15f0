"""The translated template, read the way its tests ask about it."""

import functools

from tools.stack import filled, template

DESTINATIONS = ("news", "price", "explain")

TRIAL = {"DatabaseUrl": "postgres://user:password@host/database"}
SECRET = {"DatabaseSecretArn": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:tailcar"}
IAM = {**SECRET, "DatabaseResourceId": "db-ABC", "DatabaseHost": "host"}
VPC = {"VpcId": "vpc-1", "SubnetIds": "subnet-1,subnet-2", "PrivateRouteTableIds": "rtb-1", "DatabaseSecurityGroupId": "sg-1"}

WAYS = {
    "by URL": TRIAL,
    "by secret": SECRET,
    "by IAM": IAM,
    "by secret in a VPC": {**SECRET, **VPC},
    "by IAM in a VPC, with a configuration": {**IAM, **VPC, "ConfigUri": "s3://bucket/key", "SourceBucket": "source"},
}
"""Every way to reach a database and a network that the parameters offer."""


@functools.cache
def whole():
    """The template as SAM translates it."""
    return template.translated()


def each_profile():
    """The profiles of time settings and their seconds."""
    return whole()["Mappings"]["Times"].items()


def properties(kind, **parameters):
    """Properties of the resources of a type by name, in a deploy with these parameters."""
    found = filled.resources(whole(), parameters if "DatabaseSecretArn" in parameters else {**TRIAL, **parameters})
    return {name: resource.get("Properties", {}) for name, resource in found.items() if resource["Type"] == kind}


def queue_of(mapping):
    """The name of the queue that an event source mapping polls."""
    return mapping["EventSourceArn"]["Fn::GetAtt"][0]


def dead_letter_of(queue):
    """The name of a queue's dead-letter queue."""
    return queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]


def sources():
    """The queues of the destinations. Dead-letter queues are mapped too, and have no further one."""
    mapped = {queue_of(mapping) for mapping in properties("AWS::Lambda::EventSourceMapping").values()}
    return {name: queue for name, queue in properties("AWS::SQS::Queue").items() if name in mapped and "RedrivePolicy" in queue}


def listed(value):
    """A value that may be one or many, as many."""
    return value if isinstance(value, list) else [value]
