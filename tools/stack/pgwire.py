"""Just enough of PostgreSQL's protocol to run statements without psql or a driver.

Trust authentication over loopback, the simple query protocol, text results. For the stack's own needs
(is it up, make a database, apply migrations, count rows); not a driver.
"""

import socket
import struct


class ServerError(Exception):
    """The server refused a statement; the text is its message."""


def execute(port, sql, database="postgres", user="postgres"):
    """Runs `sql` (any number of statements, one implicit transaction) and returns all rows as text."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        stream = connection.makefile("rwb")
        _start(stream, user, database)
        return _query(stream, sql)


def accepts(port):
    """Whether a server answers on this port."""
    try:
        return execute(port, "select 1") == [["1"]]
    except (OSError, ServerError):
        return False


def _start(stream, user, database):
    body = struct.pack("!i", 3 << 16) + f"user\0{user}\0database\0{database}\0\0".encode()
    stream.write(struct.pack("!i", len(body) + 4) + body)
    stream.flush()
    for kind, payload in _messages(stream):
        if kind == b"E":
            raise ServerError(_text(payload))


def _query(stream, sql):
    body = sql.encode() + b"\0"
    stream.write(b"Q" + struct.pack("!i", len(body) + 4) + body)
    stream.flush()
    rows, refused = [], None
    for kind, payload in _messages(stream):
        if kind == b"D":
            rows.append(_row(payload))
        elif kind == b"E":
            refused = _text(payload)
    if refused:
        raise ServerError(refused)
    return rows


def _messages(stream):
    """Messages up to ReadyForQuery, or to the end when the server hangs up after an error."""
    while True:
        head = stream.read(5)
        if len(head) < 5:
            return
        payload = stream.read(struct.unpack("!i", head[1:])[0] - 4)
        if head[:1] == b"Z":
            return
        yield head[:1], payload


def _row(payload):
    (count,), at, values = struct.unpack("!h", payload[:2]), 2, []
    for _ in range(count):
        (size,) = struct.unpack("!i", payload[at : at + 4])
        at += 4
        values.append(None if size < 0 else payload[at : at + size].decode())
        at += max(size, 0)
    return values


def _text(payload):
    fields = {part[:1]: part[1:].decode(errors="replace") for part in payload.split(b"\0") if part}
    return f"{fields.get(b'M', 'unknown error')} (SQLSTATE {fields.get(b'C', '?')})"
