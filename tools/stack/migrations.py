"""The digest of the migrations in template.yaml, which makes CloudFormation call the migrator when they change."""

import hashlib
import re

from .paths import MIGRATIONS, TEMPLATE

LINE = re.compile(r"^( +SchemaHash: )\S+$", flags=re.MULTILINE)


def digest():
    """Changes with every migration's name and content."""
    all_of_them = hashlib.sha256()
    for file in sorted(MIGRATIONS.glob("*.sql")):
        all_of_them.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return all_of_them.hexdigest()[:16]


def write():
    """Puts the digest of today's migrations into template.yaml."""
    text = TEMPLATE.read_text()
    if (fresh := LINE.sub(rf"\g<1>{digest()}", text)) != text:
        TEMPLATE.write_text(fresh)
