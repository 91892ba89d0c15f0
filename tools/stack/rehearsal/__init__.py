"""Rehearsals of what a person does with a deployed stack: deploy, watch, upgrade, roll back, delete.

Each module has servers of its own, with authorization on: a function may do what its role allows. They
deploy the project's own template and need minutes, so `make test` leaves them out; `make rehearse` and CI
run them.
"""
