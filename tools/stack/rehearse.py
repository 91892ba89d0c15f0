"""Runs the rehearsals: a build of today, then each of them with servers of its own."""

import unittest

from . import bootstraps, deploy
from .paths import HOME, PROJECT, TEMPLATE
from .say import Failed, step

BUILT = HOME / "rehearsal/build"
"""Today's functions, as the rehearsals deploy them."""


def run(names):
    """Runs all rehearsals, or those whose names contain one of `names`; returns the exit code."""
    with step("Building the functions (sam build)"):
        deploy.build(TEMPLATE, BUILT, HOME / "logs/rehearsal-build.log")
    bootstraps.report(BUILT)
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{name}*" for name in names] or None
    found = loader.discover(str(PROJECT / "tools/stack/rehearsal"), top_level_dir=str(PROJECT))
    if not found.countTestCases():
        raise Failed(f"no rehearsal is called like that: {' '.join(names)}")
    return 0 if unittest.TextTestRunner(verbosity=2).run(found).wasSuccessful() else 1
