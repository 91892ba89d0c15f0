"""Starts ministack with one thing put right: CloudFormation's types.

AWS converts a property to the type that its resource declares; a number parameter (which `Ref` gives as
text) becomes a number, and a number in a function's environment becomes text. ministack 1.5.33 hands
both on as they are, so that such a mapping never polls and such a function never starts. Everything
else of it is untouched. Runs in the tools' virtual environment, as the emulator's own process.
"""

from ministack import app
from ministack.services.cloudformation import provisioners


def function(properties):
    """Properties of a function, with every variable as text."""
    environment = properties.get("Environment") or {}
    variables = {name: _text(value) for name, value in (environment.get("Variables") or {}).items()}
    return {**properties, "Environment": {**environment, "Variables": variables}}


def mapping(properties):
    """Properties of an event source mapping, with its concurrency as a number."""
    scaling = {name: int(value) for name, value in (properties.get("ScalingConfig") or {}).items()}
    return {**properties, "ScalingConfig": scaling} if scaling else properties


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def _convert(resource_type, typed):
    """Lets the handlers of a resource type see typed properties."""
    handlers = provisioners._RESOURCE_HANDLERS[resource_type]
    create, update = handlers["create"], handlers["update"]
    handlers["create"] = lambda name, properties, *rest: create(name, typed(properties), *rest)
    handlers["update"] = lambda name, old, new, *rest: update(name, typed(old), typed(new), *rest)


if __name__ == "__main__":
    _convert("AWS::Lambda::Function", function)
    _convert("AWS::Lambda::EventSourceMapping", mapping)
    app.main()
