"""What a built function is like before AWS sees it: can it start there, how large it is, how fast it asks for work.

The newest symbol of the C library decides whether it starts: `provided.al2023` has GLIBC 2.34, and a
binary linked on a newer system may want more. Starting it takes no AWS and no database: it meets a
runtime API that answers its first request for work with silence.
"""

import os
import re
import subprocess
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from . import filled, template
from .say import Failed

GLIBC_OF_AL2023 = (2, 34)
STARTS = 5
"""Of which the median is shown."""

SOMEWHERE = "https://sqs.us-east-1.amazonaws.com/000000000000/"


@dataclass(frozen=True)
class Bootstrap:
    """One built function."""

    name: str
    file: Path

    @property
    def size_mb(self):
        """Megabytes on disk, which is also what a sandbox loads."""
        return self.file.stat().st_size / 1e6

    @property
    def glibc(self):
        """The newest version of the C library whose symbols it needs."""
        return newest_glibc(self.file.read_bytes())

    @property
    def stripped(self):
        """Whether it is without the symbols that only a debugger wants."""
        return b".symtab\0" not in self.file.read_bytes()


def newest_glibc(binary):
    """The newest GLIBC version that a binary names; it names those it needs and no others."""
    named = re.findall(rb"GLIBC_(\d+)\.(\d+)(?:\.\d+)?\0", binary)
    return max((int(major), int(minor)) for major, minor in named)


def built(folder):
    """The bootstraps that `sam build` left in a folder."""
    found = [Bootstrap(file.parent.name, file) for file in sorted(Path(folder).glob("*/bootstrap"))]
    if not found:
        raise Failed(f"there is nothing built in {folder}; `sam build` does it")
    return found


def report(folder):
    """Prints a row for each function; fails when one could not start on AWS."""
    print("| function | MB | GLIBC | stripped | start → first request, ms | RSS then, MB |\n|---|---|---|---|---|---|")
    bootstraps = built(folder)
    for each in bootstraps:
        starts = sorted(start(each) for _ in range(STARTS))
        took_ms, rss_mb = starts[STARTS // 2]
        stripped = "yes" if each.stripped else "no"
        print(f"| {each.name} | {each.size_mb:.1f} | {'%d.%d' % each.glibc} | {stripped} | {took_ms:.0f} | {rss_mb:.1f} |")
    late = [each.name for each in bootstraps if each.glibc > GLIBC_OF_AL2023]
    if late:
        raise Failed(f"these need a newer C library than provided.al2023 has: {', '.join(late)}; build with zig, which cargo-lambda does if it is there")


def start(bootstrap):
    """Milliseconds from the start to the first request for work, and megabytes of memory then."""
    asked = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _silence(asked))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {"PATH": os.defpath, **_variables(bootstrap.name), **_lambda(server.server_address[1])}
    began = time.monotonic()
    child = subprocess.Popen([bootstrap.file], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        if not asked.wait(10):
            child.kill()
            raise Failed(f"{bootstrap.name} did not ask for work: {child.stderr.read().decode(errors='replace')[-2000:]}")
        took_ms = (time.monotonic() - began) * 1000
        return took_ms, _rss_mb(child.pid)
    finally:
        child.kill()
        child.wait()
        child.stderr.close()
        server.shutdown()
        server.server_close()


def _silence(asked):
    class Runtime(BaseHTTPRequestHandler):
        """The runtime API of an account in which nothing happens."""

        def do_GET(self):  # the name that http.server wants
            asked.set()
            time.sleep(30)

        def log_message(self, *_):
            pass

    return Runtime


def _variables(function):
    """The environment that the template gives the function, with addresses of nothing."""
    trial = {"DatabaseUrl": "postgres://nobody@127.0.0.1:1/nothing"}
    described = filled.resources(template.translated(), trial)[function]["Properties"]["Environment"]["Variables"]
    return {name: _text(value) for name, value in described.items()}


def _text(value):
    if isinstance(value, dict) and "Fn::Sub" in value:
        return re.sub(r"\$\{(\w+)\}", SOMEWHERE + r"\1", value["Fn::Sub"])
    if isinstance(value, dict):
        return SOMEWHERE + value["Ref"]
    return str(value)


def _lambda(port):
    return {
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{port}",
        "AWS_LAMBDA_FUNCTION_NAME": "measured",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_LOG_FORMAT": "JSON",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
    }


def _rss_mb(pid):
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
