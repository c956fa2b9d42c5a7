#!/usr/bin/env python3
"""Frames like `[gc gen1 blocking]` and `[jit Shop.Order.Total OptimizedTier1]`: as much time lies below them as collections and compilations
took. That is judged by the word of `pauses` and `jit`, which watch at the same time."""
import collections
import math
import os

import folded
import harness
import runtimes
from watcher import Watcher

VERSIONS = runtimes.selected()
FREQUENCY = 499
SECONDS = 5


def waits(pid):
    """Nanoseconds for which its threads were ready to run while others had the CPU (sched-stats: the second number)."""
    waited = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat") as f:
                waited += int(f.read().split()[1])
        except OSError:
            pass
    return waited


class RolesTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def record(self, version, mode, command, *arguments, env=None):
        """(stacks, lines of the watcher during the recording, what the target waited for a CPU)"""
        self.need_runtime(version)
        with harness.workload(version, mode, "--seconds", 120, env=env) as target, Watcher(command, target.host_pid) as watcher:
            waited, stolen = waits(target.host_pid), harness.steal_seconds()
            result = harness.record("--pid", str(target.host_pid), "--duration", f"{SECONDS}s", "--frequency", str(FREQUENCY),
                                    "--hook-budget", "0", *arguments)
            # Time that a hypervisor takes is waited for as well, and in no account of the kernel's of a thread.
            waited = waits(target.host_pid) - waited + (harness.steal_seconds() - stolen) * 1e9
            lines = watcher.finish()
        self.assertEqual(result.status, 0, result)
        duration = result.stats["duration_seconds"] * 1e9
        # The watcher sees some time before and after; what it saw in between is its last lines.
        end = max(line["time_ns"] for line in lines)
        lines = [line for line in lines if end - duration <= line["time_ns"]]
        for frames, _ in result.profile.stacks:
            self.assertFalse(any("[uprobes]" in frame for frame in frames), frames)
        return result, lines, waited

    def check_share(self, what, count, spent_ns, waited_ns):
        """A thread that has no CPU is not sampled, so samples lie between the time that passed and that less what was waited."""
        expected, least = (ns / harness.period_ns(FREQUENCY) for ns in (spent_ns, max(spent_ns - waited_ns, 0)))
        noise = 5 * math.sqrt(expected + 1) + 0.05 * expected
        print(f"    {what}: {count} samples of {expected:.0f} (at least {least:.0f}, noise {noise:.0f})", flush=True)
        self.assertGreater(expected, 100, "too little for a statement")
        self.assert_within(count - expected, noise, what)
        self.assert_within(least - count, noise, what)

    def test_collections(self):
        for version in VERSIONS:
            for env in ({}, {"DOTNET_gcServer": "1", "DOTNET_GCHeapCount": "1"}):
                with self.subTest(version=version, env=env):
                    result, pauses, waited = self.record(version, "gc", "pauses", env=env)
                    count, parents = 0, collections.Counter()
                    for frames, weight in result.profile.stacks:
                        roles = [i for i, frame in enumerate(frames) if folded.GC_ROLE.fullmatch(frame)]
                        if not roles:
                            continue
                        self.assertEqual(len(roles), 1, frames)
                        count += weight
                        parents["managed" if frames[roles[0] - 1].endswith("_[j]") else "runtime"] += weight
                    self.check_share(f"{version} {env}", count, sum(p["pause_ns"] - p["suspend_ns"] for p in pauses), waited)
                    # Each heap of a server has a thread of its own.
                    self.assertGreater(parents["runtime" if env else "managed"], 0.9 * count, parents)

    def test_compilations(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                result, compiled, waited = self.record(version, "expr", "jit")
                count = below = in_role = 0
                for frames, weight in result.profile.stacks:
                    roles = [i for i, frame in enumerate(frames) if folded.JIT_ROLE.fullmatch(frame)]
                    in_probe = any(frame.startswith("hook_") or "uprobe" in frame or "exc_int3" in frame for frame in frames)
                    in_compiler = any(frame.startswith("libclrjit.so") for frame in frames) and not in_probe
                    below += weight if in_compiler else 0
                    in_role += weight if in_compiler and roles else 0
                    count += weight if roles else 0
                    if roles:
                        # Code that the compiler has the runtime run is a part of the compilation.
                        end = next((i for i, frame in enumerate(frames) if frame.startswith("libclrjit.so")), len(frames))
                        managed = [i for i, frame in enumerate(frames[:end]) if frame.endswith("_[j]")]
                        self.assertTrue(not managed or managed[-1] == roles[0] - 1, frames)
                self.check_share(version, count, sum(event["own_ns"] for event in compiled), waited)
                self.assertGreaterEqual(in_role, 0.97 * below, "samples in the compiler")

    def test_no_hooks(self):
        version = VERSIONS[-1]
        self.need_runtime(version)
        with harness.workload(version, "gc", "--seconds", 60) as target:
            result = harness.record("--pid", str(target.host_pid), "--duration", "2s", "--no-hooks")
        self.assertEqual(result.status, 0, result)
        self.assertNotIn("pauses", result.stats)
        self.assertNotIn("roles", result.stats["frames"])
        self.assertFalse(any(folded.is_role(frame) for frames, _ in result.profile.stacks for frame in frames))


if __name__ == "__main__":
    harness.main()
