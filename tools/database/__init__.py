"""Servers with TLS and with a pooler before them, for tests of the way to the database."""
