#!/usr/bin/env python3
"""A process that poses as .NET and lies about its memory neither stops the profiler nor costs the others their names."""
import os

import harness
import runtimes
import stack_truth

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
                    usual, result = (harness.record("--pid", ",".join(str(t.host_pid) for t in targets), "--duration", f"{SECONDS}s", "--frequency", "499")
                                     for targets in ((first, second), (first, second, liar)))
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
                self.assertLessEqual(unnamed, stack_truth.allowed_faults(named, 0.999), f"the others lost names, of {named}\n{result}")
                # As on a machine that needs a second for the same without it.
                slow = max(1, usual.stats["self"]["cpu_seconds"])
                print(f"    {version}: {result.seconds:.1f} s, {result.stats['self']['cpu_seconds']:.2f} s of CPU; without it {usual.seconds:.1f} s, "
                      f"{usual.stats['self']['cpu_seconds']:.2f} s", flush=True)
                self.assertLess(result.seconds, usual.seconds + 10 * slow, "the liar held up the profiler")
                self.assertLess(result.stats["self"]["cpu_seconds"], SECONDS * slow, f"the liar keeps the profiler busy\n{result}")


if __name__ == "__main__":
    harness.main()
