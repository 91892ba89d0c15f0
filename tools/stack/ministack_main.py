"""Starts ministack with what it does otherwise than AWS put right, where the stack would notice.

- *Types.* AWS converts a property to the type that its resource declares; a number parameter (which `Ref`
  gives as text) becomes a number, and a number in a function's environment becomes text. ministack 1.5.33
  hands both on as they are, so that such a mapping never polls and such a function never starts.
- *TLS.* The emulator speaks plain HTTP on loopback, so a bucket's policy that wants TLS would refuse
  everybody; every request counts as having come by TLS.
- *Batches.* Who may send, delete or hide a message may do so in batches; AWS has no rights of their own for
  them, and ministack asks for such.

Everything else of it is untouched. Runs in the tools' virtual environment, as the emulator's own process.
"""

from ministack import app
from ministack.core import iam_actions
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


def _take_loopback_for_tls():
    """Lets a policy's `aws:SecureTransport` be true."""
    pin = app.pin_request_origin
    app.pin_request_origin = lambda address, _secure: pin(address, True)


def _authorize_batches_like_their_messages():
    """Lets a batch need the right that each of its messages needs."""
    extract = iam_actions.extract_iam_action

    def action(service, *request):
        named = extract(service, *request)
        return named.removesuffix("Batch") if named and service == "sqs" else named

    iam_actions.extract_iam_action = action


def _convert(resource_type, typed):
    """Lets the handlers of a resource type see typed properties."""
    handlers = provisioners._RESOURCE_HANDLERS[resource_type]
    create, update = handlers["create"], handlers["update"]
    handlers["create"] = lambda name, properties, *rest: create(name, typed(properties), *rest)
    handlers["update"] = lambda name, old, new, *rest: update(name, typed(old), typed(new), *rest)


if __name__ == "__main__":
    _convert("AWS::Lambda::Function", function)
    _convert("AWS::Lambda::EventSourceMapping", mapping)
    _take_loopback_for_tls()
    _authorize_batches_like_their_messages()
    app.main()
