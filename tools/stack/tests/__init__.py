"""Tests of the local stack's own code and of the relations in template.yaml."""
