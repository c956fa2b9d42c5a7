#!/usr/bin/env python3
"""Freed and reused code memory gives no wrong name.

Each generation N of the target has three methods Outer, Middle and Inner with GenN in their names, and logs when it ran and for how
long. Wrong names show as: frames of two generations in one stack, a method above one that it never calls, a generation that did not run
while samples were taken, or a count that does not fit the logged CPU time.
"""
import collections
import os
import re
import tempfile
import time
import unittest

import folded
import harness
import runtimes

VERSIONS = (*runtimes.PACKED_VERSIONS, runtimes.INSTALLED)
FREQUENCY = 999
GENERATION = re.compile(r"\b(Outer|Middle|Inner)Gen(\d{6})$")


class GenerationsTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def run_mode(self, mode, version, perf_map):
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            log = os.path.join(folder, "log")
            with harness.workload(version, mode, "--seconds", 9, "--log", log, perf_map=perf_map) as target:
                time.sleep(0.7)  # some generations are gone before the first sample
                begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                result = harness.record("--pid", str(target.host_pid), "--duration", "5s", "--frequency", str(FREQUENCY))
                end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                target.truth()
                reused = self.reused_addresses(target.pid)
            with open(log) as f:
                rows = [[int(x) for x in line.split()] for line in f]
        return result, {r[0]: r for r in rows}, begin, end, reused

    @staticmethod
    def reused_addresses(pid):
        """How many addresses of the perf map held methods of two generations; None without a map."""
        path = f"/tmp/perf-{pid}.map"
        if not os.path.exists(path):
            return None
        at = collections.defaultdict(set)
        with open(path, errors="replace") as f:
            for line in f:
                match = re.search(r"(?:Outer|Middle|Inner)Gen(\d{6})", line)
                if match:
                    at[line.split()[0]].add(match.group(1))
        return sum(len(v) > 1 for v in at.values())

    def check(self, mode, version, perf_map, complete):
        result, log, begin, end, reused = self.run_mode(mode, version, perf_map)
        profile = self.check_result(result, minimum_samples=500)
        if mode == "lcg" and reused is not None:
            self.assertGreater(reused, 3, "the target did not reuse addresses: the test would prove nothing")
        counts, unnamed = collections.Counter(), 0
        for frames, count in profile.stacks:
            found = [GENERATION.search(folded.bare(f)) for f in frames]
            inside = [(m.group(1), int(m.group(2))) for m in found if m]
            unnamed += count if any(f.startswith("[jit") for f in frames) else 0
            if not inside:
                continue
            generations = {g for _, g in inside}
            self.assertEqual(len(generations), 1, f"two generations in one stack: {';'.join(frames)}")
            roles = [role for role, _ in inside]
            # A leaf may be caught before its frame stands, so a caller may be missing, but the order never turns.
            self.assertEqual(roles, sorted(roles, key=("Outer", "Middle", "Inner").index), f"impossible call order: {';'.join(frames)}")
            self.assertEqual(len(set(roles)), len(roles), f"a method above itself: {';'.join(frames)}")
            (generation,) = generations
            self.assertIn(generation, log, f"generation {generation} never ran")
            counts[generation] += count
        for generation in counts:
            _, _, began, ended, _ = log[generation]
            self.assertTrue(ended >= begin and began <= end, f"generation {generation} did not run while samples were taken")
        inside = [g for g, (_, _, b, e, _) in log.items() if b > begin + 1.5e9 and e < begin + 4.5e9]
        self.assertGreater(len(inside), 10, "too few generations for a statement")
        for generation in inside:
            expected = log[generation][4] * FREQUENCY / 1e9
            noise = 4 * expected ** 0.5 + 4
            self.assertLess(counts[generation], expected + noise, f"generation {generation} has another one's samples")
            if complete:
                self.assertGreater(counts[generation], expected - noise, f"generation {generation} lost samples\n{result}")
        if complete:
            self.check_managed_named(result)
        else:
            # A perf map has no times: what two lines claim may stay unnamed, but then the frame says so.
            self.assertGreater(sum(counts.values()) + unnamed, 0.8 * profile.total, result)

    def each(self, mode, perf_map):
        for version in VERSIONS:
            with self.subTest(mode=mode, version=version, PerfMapEnabled=perf_map):
                self.need_runtime(version)
                timed = perf_map in (1, 2) and not runtimes.jitdump_is_broken(version)
                if perf_map == 2 and not timed:
                    continue  # no names to be wrong: names_live_test.py
                self.check(mode, version, perf_map, complete=timed or mode == "alc")

    def test_collectible_contexts(self):
        self.each("alc", 1)

    def test_collectible_contexts_perf_map_only(self):
        self.each("alc", 3)

    def test_dynamic_methods_at_reused_addresses(self):
        self.each("lcg", 1)

    def test_dynamic_methods_at_reused_addresses_perf_map_only(self):
        self.each("lcg", 3)


if __name__ == "__main__":
    harness.main()
