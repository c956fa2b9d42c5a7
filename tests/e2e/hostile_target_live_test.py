#!/usr/bin/env python3
"""A process that poses as .NET and lies about its memory neither stops the profiler nor costs the others their names."""
import os
import unittest

import harness
import runtimes

PROGRAM = os.environ.get("HOSTILE_RUNTIME", os.path.join(runtimes.SOURCE, "build/release/tests/apps/hostile_runtime"))
SECONDS = 4


class HostileTargetTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def library(self, version):
        root = runtimes.root(version)
        return os.path.join(root, "shared", "Microsoft.NETCore.App", version, "libcoreclr.so")

    def test_beside_healthy_ones(self):
        for version in (runtimes.PACKED_VERSIONS[0], runtimes.PACKED_VERSIONS[-1]):
            with self.subTest(version=version):
                self.need_runtime(version)
                with harness.workload(version, "json", "--seconds", 120) as first, harness.workload(version, "split", "--seconds", 120) as second, \
                        harness.Target([PROGRAM, self.library(version), "120"]) as liar:
                    pids = ",".join(str(t.host_pid) for t in (first, second, liar))
                    result = harness.record("--pid", pids, "--duration", f"{SECONDS}s", "--frequency", "499", timeout=60)
                self.check_result(result, minimum_samples=100)
                samples = {p["pid"]: p["samples"] for p in result.stats["processes"]}
                for target in (first, second, liar):
                    self.assertGreater(samples.get(target.host_pid, 0), 20, f"{target.command} was not sampled\n{result}")
                lies = [stack for stack, _ in result.profile.stacks if stack[0].startswith("hostile_runtime")]
                self.assertTrue(lies, "the liar's stacks are not there")
                # A managed name in it would be an invention: it runs none.
                for stack in lies:
                    for frame in stack:
                        self.assertFalse(frame.endswith("_[j]") and not frame.startswith("[") , f"an invented name: {';'.join(stack)}")
                named = unnamed = 0
                for stack, count in result.profile.stacks:
                    if stack[0].startswith("hostile_runtime"):
                        continue
                    for frame in stack:
                        if frame.endswith("_[j]"):
                            unnamed += count if frame.startswith("[jit") else 0
                            named += count
                self.assertGreater(named, 500)
                self.assertLessEqual(unnamed, 0.001 * named + 3, f"the others lost names\n{result}")
                self.assertLess(result.seconds, SECONDS + 10, "the liar held up the profiler")
                self.assertLess(result.stats["self"]["cpu_seconds"], SECONDS, f"the liar keeps the profiler busy\n{result}")


if __name__ == "__main__":
    harness.main()
