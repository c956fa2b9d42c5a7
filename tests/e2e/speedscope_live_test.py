#!/usr/bin/env python3
"""The output imports with speedscope's own importer, stack for stack."""
import collections
import json
import os
import subprocess
import tempfile

import harness
import runtimes

VERSION = "1.25.0"


class SpeedscopeTest(harness.LiveTest):
    NEEDS = ("dotnet", "node", "npm")

    @classmethod
    def check_needs(cls):
        super().check_needs()
        cls.package = runtimes.npm_package("speedscope", VERSION, "speedscope")

    def check_import(self, result, suffix):
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            path = os.path.join(folder, "profile" + suffix)
            with open(path, "wb") as f:
                f.write(result.out)
            script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "speedscope_import.js")
            done = subprocess.run(["node", script, self.package, path], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        imported = json.loads(done.stdout)
        self.assertEqual(imported["weight"], result.profile.total)
        theirs, ours = collections.Counter(), collections.Counter()
        for stack, weight in imported["stacks"]:
            theirs[tuple(stack)] += weight
        for frames, count in result.profile.stacks:
            ours[frames] += count
        self.assertEqual(theirs, ours)

    def test_imports_with_every_name_style(self):
        with harness.workload(runtimes.INSTALLED, "mix", "--seconds", 30, "--threads", 2, perf_map=1) as target:
            for style in ("short", "full", "raw"):
                with self.subTest(style=style):
                    result = harness.record("--pid", str(target.host_pid), "--duration", "2s", "--frequency", "499", "--names", style)
                    self.check_result(result, minimum_samples=100)
                    # By its suffix, and by content alone.
                    self.check_import(result, ".collapsedstack.txt")
                    self.check_import(result, ".folded")


if __name__ == "__main__":
    harness.main()
