"""Where things are: the project, and the folder that holds everything the local stack makes."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
HOME = PROJECT / ".tailcar"
STATE = HOME / "stack.json"
VENV = HOME / "venv"
VENV_CHECKOV = HOME / "checkov"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
REQUIREMENTS_CHECKOV = Path(__file__).with_name("requirements-checkov.txt")
REQUIREMENTS_POSTGRES = Path(__file__).with_name("requirements-postgres.txt")
MIGRATIONS = PROJECT / "migrations"
TEMPLATE = PROJECT / "template.yaml"
