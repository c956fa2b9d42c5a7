#!/usr/bin/env python3
"""Freed and reused code memory gives no wrong name.

Each generation N of the target has three methods Outer, Middle and Inner with GenN in their names, and logs when it ran and for how
long. Wrong names show in four ways: frames of two generations in one stack; a method above one that it never calls; a generation that did not
run while samples were taken. The fourth is counts that do not fit the logged CPU time. One generation may have too many, and all
together may have too few as well.
"""
import collections
import os
import re
import tempfile
import time

import folded
import harness
import runtimes

VERSIONS = runtimes.selected()
FREQUENCY = 999
GENERATIONS = 25  # some 2 seconds of CPU time
# The part of the samples of the generations that must carry their names. A perf map has no times, so where addresses are reused the samples
# between two readings stay unnamed: 0.946 to 0.985 were named.
# With memory read beside it, 0.79 to 0.98 in alc-reuse: what costs the difference is not understood yet.
ALL, PERF_MAP_ONLY = 0.99, 0.75
# Without a map, methods of collectible assemblies need two readings that agree; dynamic ones are witnessed by the sampler.
# In alc-reuse the runtime's map of code leads to sections that are freed, in some runs for good: of those nearly nothing was named.
UNPREPARED = {"alc": 0.5, "lcg": 0.95, "alc-reuse": 0}
BEGAN, ENDED, CPU, SWITCHES = 2, 3, 4, 5  # columns of the target's log
GENERATION = re.compile(r"\b(Outer|Middle|Inner)Gen(\d{6})$")


class GenerationsTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def run_mode(self, mode, version, perf_map):
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            log = os.path.join(folder, "log")
            with harness.workload(version, mode, "--seconds", 300, "--log", log, perf_map=perf_map) as target:
                self.wait_for_generations(log, 5)  # some are gone before the first sample
                begun = len(self.rows(log))
                result, window = harness.record_window(target, 0, FREQUENCY,
                                                       during=lambda _: self.wait_for_generations(log, begun + GENERATIONS))
                # The last one was stopped in its middle; what it did is known when it has ended.
                self.wait_for_generations(log, len(self.rows(log)) + 1)
                reused = self.reused_addresses(target.pid)
            rows = self.rows(log)
        return result, {r[0]: r for r in rows}, window, reused

    @staticmethod
    def rows(log):
        with open(log) as f:
            return [[int(x) for x in line.split()] for line in f if line.endswith("\n")]

    def wait_for_generations(self, log, count):
        deadline = time.monotonic() + 120
        while len(self.rows(log)) < count:
            self.assertLess(time.monotonic(), deadline, "the target does not get on")
            time.sleep(0.02)

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

    def check(self, mode, version, perf_map, named_floor):
        """named_floor: which part of the CPU time that the target spent in its generations must carry their names."""
        result, log, window, reused = self.run_mode(mode, version, perf_map)
        profile = self.check_result(result, minimum_samples=500)
        if reused is not None:
            if mode == "alc":
                self.assertEqual(reused, 0, "the runtime reuses addresses by itself: alc-reuse need not force it any more")
            else:
                self.assertGreaterEqual(reused, 3, "the target did not reuse addresses: the test would prove nothing")
        self.check_window(result, window, FREQUENCY)
        counts, unnamed = self.count(profile, log, window)
        inside = [g for g, row in log.items() if row[BEGAN] >= window.begin_ns and row[ENDED] <= window.end_ns]
        self.assertGreaterEqual(len(inside), GENERATIONS - 1, "too few generations for a statement")
        stolen = window.steal_seconds * FREQUENCY
        for generation in inside:
            row = log[generation]
            self.assert_within(counts[generation] - self.expected(row), self.noise([row]) + stolen, f"generation {generation} has another one's samples")
        rows = [log[g] for g in inside]
        noise = self.noise(rows) + stolen
        named, expected = sum(counts[g] for g in inside), sum(map(self.expected, rows))
        self.assert_within(named - expected, noise, result)
        self.assert_within(named_floor * expected - named, noise, f"{len(inside)} generations have {named} samples of {expected:.0f}\n{result}")
        if named_floor == ALL:
            self.check_managed_named(result)
        else:
            # Every sample without a name says why.
            self.assert_within(ALL * expected - named - unnamed, noise, result)

    def count(self, profile, log, window):
        """(samples by generation, samples that say they have no name); fails at what cannot have happened."""
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
            row = log[generation]
            self.assertTrue(row[ENDED] >= window.begin_ns and row[BEGAN] <= window.end_ns, f"generation {generation} did not run while samples were taken")
        return counts, unnamed

    @staticmethod
    def expected(row):
        return row[CPU] / harness.period_ns(FREQUENCY)

    @staticmethod
    def noise(rows):
        """The number by which samples of these generations may differ from their CPU time. A CPU is sampled at fixed intervals. So each stay of the
        thread on a CPU counts less than one sample too many or too few, with a variance of at most 1/4; here 5 sigma. (Measured on
        a machine with 14 switches a generation: standard deviations of 0.17 to 0.42 a stay.)"""
        return 2 + 5 * (sum(row[SWITCHES] + 1 for row in rows) / 4) ** 0.5

    def each(self, mode, perf_map):
        for version in VERSIONS:
            with self.subTest(mode=mode, version=version, PerfMapEnabled=perf_map):
                self.need_runtime(version)
                timed = perf_map in (1, 2) and not runtimes.jitdump_is_broken(version)
                if perf_map is None:
                    # Names come from memory that is read some time after the sample: what is gone by then has none, and no other's.
                    self.check(mode, version, perf_map, named_floor=UNPREPARED[mode])
                    continue
                if perf_map == 2 and not timed:
                    continue  # no names to be wrong: names_live_test.py
                if not timed and runtimes.writes_map_in_blocks(version):
                    # Names come from memory: the map is late by as much as 4 KiB of lines take.
                    self.check(mode, version, perf_map, named_floor=UNPREPARED[mode])
                    continue
                self.check(mode, version, perf_map, named_floor=ALL if timed or mode == "alc" else PERF_MAP_ONLY)

    def test_collectible_contexts(self):
        self.each("alc", 1)

    @harness.in_matrix
    def test_collectible_contexts_perf_map_only(self):
        self.each("alc", 3)

    def test_collectible_contexts_at_reused_addresses(self):
        self.each("alc-reuse", 1)

    @harness.in_matrix
    def test_collectible_contexts_at_reused_addresses_perf_map_only(self):
        self.each("alc-reuse", 3)

    def test_dynamic_methods_at_reused_addresses(self):
        self.each("lcg", 1)

    @harness.in_matrix
    def test_dynamic_methods_at_reused_addresses_perf_map_only(self):
        self.each("lcg", 3)

    def test_collectible_contexts_unprepared(self):
        self.each("alc", None)

    def test_dynamic_methods_at_reused_addresses_unprepared(self):
        self.each("lcg", None)


if __name__ == "__main__":
    harness.main()
