"""Calls to the emulator by boto3. Runs in the tools' virtual environment, never in the bare driver."""

import json
import time

from .say import Failed


def client(now, service):
    """A client of the running emulator."""
    import boto3  # here: the driver itself must start without it
    from botocore.config import Config

    reach = now["aws"]
    return boto3.client(
        service,
        endpoint_url=reach["AWS_ENDPOINT_URL"],
        region_name=reach["AWS_REGION"],
        aws_access_key_id=reach["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=reach["AWS_SECRET_ACCESS_KEY"],
        config=Config(read_timeout=330, retries={"max_attempts": 0}),
    )


def outputs(now, stack):
    """The outputs of a deployed stack by name."""
    described = client(now, "cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])}


def invoke(now, function, event):
    """Invokes a function and waits; returns its answer and whether it failed."""
    answer = client(now, "lambda").invoke(FunctionName=function, Payload=json.dumps(event).encode())
    text = answer["Payload"].read().decode()
    return text, "FunctionError" in answer


def invoke_or_fail(now, function, event):
    """Invokes a function that must succeed."""
    text, failed = invoke(now, function, event)
    if failed:
        raise Failed(f"{function} failed: {text}")
    return text


def environment(now, function):
    """The variables a deployed function has."""
    described = client(now, "lambda").get_function_configuration(FunctionName=function)
    return described.get("Environment", {}).get("Variables", {})


def follow(now, function, still_wanted):
    """Yields a function's log lines, oldest first, and goes on while `still_wanted()`."""
    logs, seen, since = client(now, "logs"), set(), 0
    while True:
        for event in _events(logs, f"/aws/lambda/{function}", since):
            line = (event["logStreamName"], event["timestamp"], event["message"])  # the emulator gives no event id
            if line not in seen:
                seen.add(line)
                since = max(since, event["timestamp"])
                yield event["message"].rstrip("\n")
        if not still_wanted():
            return
        time.sleep(1)


def _events(logs, group, since):
    try:
        pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group, startTime=since)
        return sorted((event for page in pages for event in page["events"]), key=lambda event: event["timestamp"])
    except logs.exceptions.ResourceNotFoundException:
        return []
