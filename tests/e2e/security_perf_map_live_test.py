#!/usr/bin/env python3
"""Nothing is written into a process unless the host's owner asked for it. Code that is in no map gets no name.

The runtime says that it is of a version that nobody knows: its memory is not read then, and a map is the only source of names.
"""
import os
import re
import shutil
import tempfile
import time

import diagnostics
import folded
import harness
import runtimes

VERSION = "11.0.0"
CLAIMED = "99"


class PerfMapTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def setUp(self):
        self.need_runtime(VERSION)
        self.root = runtimes.root_of_a_future_version(VERSION, CLAIMED)
        self.leases = tempfile.mkdtemp(prefix="clrsampler-leases-")
        self.addCleanup(shutil.rmtree, self.leases, True)

    def target(self):
        command = [os.path.join(self.root, "dotnet"), runtimes.workload(), "json", "--seconds", "120"]
        return harness.Target(command, env={"DOTNET_ROOT": self.root})

    def options(self, target, *more):
        return ("--pid", str(target.host_pid), "--frequency", "499", "--lease-directory", self.leases, *more)

    def watch(self, agent, target, cpu_seconds):
        """Maps that were seen in the target while the agent ran."""
        seen = set()
        used = target.cpu_ns()
        deadline = time.monotonic() + 150
        while target.cpu_ns() - used < cpu_seconds * 1e9 and time.monotonic() < deadline:
            seen.update(diagnostics.open_maps(target.host_pid))
            time.sleep(0.02)
        agent.interrupt()
        return agent.finish(120), seen

    def check_no_stub_by_elimination(self, result):
        # Without the runtime's memory nobody says that a piece of code is a stub, but the map for those it names.
        self.assertEqual(result.stats["frames"]["by_source"]["memory"], 0, result)
        self.assertEqual(result.profile.with_frame(lambda frame: folded.bare(frame) == "[stub]"), 0, result)

    def test_unasked_no_map_is_written(self):
        with self.target() as target:
            time.sleep(1.2)  # younger ones get no request anyway
            agent = harness.Agent(self.options(target))
            agent.wait_until_sampling()
            result, seen = self.watch(agent, target, 3)
            self.check_result(result, minimum_samples=200)
            self.assertEqual(seen, set(), "the agent had the target write a map")
            self.assertEqual(diagnostics.map_files(target.pid), [])
            self.assertEqual(os.listdir(self.leases), [])
        self.assertNotIn("perf_maps", result.stats)
        self.assertRegex(result.err, r"hint: --enable-perf-map")
        self.check_no_stub_by_elimination(result)

    def test_tried_when_asked_for_and_marked(self):
        with self.target() as target:
            result = harness.record(*self.options(target, "--try-unknown-runtime", "--duration", "4s"))
        self.check_result(result, minimum_samples=200)
        self.check_managed_named(result, minimum=0.99)
        self.assertGreater(result.stats["frames"]["by_source"]["memory"], 200, result)
        self.assertRegex(result.err, r"is newer than all known ones; its memory is read as that of \.NET")
        compiled = [folded.bare(frame) for frames, _ in result.profile.stacks for frame in frames if folded.bare(frame).startswith("Workload.")]
        self.assertTrue(compiled)
        self.assertEqual([name for name in compiled if not name.endswith(" [unverified runtime]")], [])

    def test_asked_for_it_is_said_and_ends_in_time(self):
        with self.target() as target:
            time.sleep(1.2)
            agent = harness.Agent(self.options(target, "--enable-perf-map", "--perf-map-time", "4s"))
            agent.wait_until_sampling()
            # CPU time of one thread: this takes no less on the clock.
            result, seen = self.watch(agent, target, 9)
            self.check_result(result, minimum_samples=200)
            self.assertTrue(seen, result)
            self.assertEqual(diagnostics.open_maps(target.host_pid), [])
            self.assertEqual(diagnostics.map_files(target.pid), [])
        maps = result.stats["perf_maps"]
        self.assertEqual((maps["enabled"], maps["ended"], maps["over_cap"]), (1, 1, 1), result)
        self.assertIn("perf maps: switched on in 1 process, off again in 1, 1 of them for their size or time", result.err)
        self.assertTrue(re.search(r"was on for 4 seconds and was switched off", result.err), result)
        self.check_no_stub_by_elimination(result)


if __name__ == "__main__":
    harness.main()
