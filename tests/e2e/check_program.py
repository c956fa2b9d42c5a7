"""The common part of the tests of the checking programs in tools/."""
import os
import sys
import unittest

import harness
import runtimes


class CheckProgramTest(unittest.TestCase):
    def need(self, what, *arguments):
        """what(*arguments), which may say that something is missing here: then the test skips, or fails where nothing may skip."""
        try:
            return what(*arguments)
        except runtimes.Missing as reason:
            if harness.REQUIRE_LIVE:
                self.fail(f"CLRSAMPLER_REQUIRE_LIVE=1, but: {reason}")
            print(f"skipped: {reason}", flush=True)
            self.skipTest(str(reason))


def main(program):
    """Entry of each test file. `program`: the path of what it checks with, which has the name of its build target."""
    if not os.path.exists(program):
        print(f"skipped: no program {program}: build the target {os.path.basename(program)}", flush=True)
        sys.exit(1 if harness.REQUIRE_LIVE else harness.SKIP_EXIT)
    harness.main()
