"""The local stack: PostgreSQL and an AWS emulator as plain local processes.

`python3 -m tools.stack help` lists the commands. Everything lives in the project's own `.tailcar/`
folder on free loopback ports; nothing else on the machine is touched, and only processes that this
package started are ever ended. Needs the Python standard library only: what it drives (the emulator,
SAM, cargo-lambda) is installed into a virtual environment of its own.
"""
