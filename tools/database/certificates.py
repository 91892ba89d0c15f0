"""A private authority and a server's certificate, made by openssl for one run."""

import subprocess
from pathlib import Path


def make(folder: Path, name: str, host: str) -> Path:
    """A certificate for `host` in `folder`/`name`.{crt,key}, and the authority that signed it; gives the authority."""
    authority, key = folder / f"{name}-ca.crt", folder / f"{name}-ca.key"
    _openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name} authority",
             "-keyout", key, "-out", authority)
    request, names = folder / f"{name}.csr", folder / f"{name}.ext"
    names.write_text(f"subjectAltName=DNS:{host}\n")
    _openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={host}", "-keyout", folder / f"{name}.key", "-out", request)
    _openssl("x509", "-req", "-in", request, "-CA", authority, "-CAkey", key, "-CAcreateserial", "-days", "2",
             "-extfile", names, "-out", folder / f"{name}.crt")
    return authority


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
