#!/usr/bin/env python3
"""Probes cost a process no more than `--hook-budget` says. A process that collects and compiles without end has them for a part of the time,
and what is seen in that part is whole. A run that asks for pauses or compilations gets all of them."""
import collections
import os
import time

import folded
import harness
import runtimes
from watcher import Watcher

VERSIONS = runtimes.newest()
SECONDS = 15
SHARE = 0.003  # the default
AT_ONCE_SECONDS = 4
# The least that a hit counts: what it takes beyond a trap. A trap itself is measured by the agent, and never free.
LEAST_HIT_SECONDS = 3e-6


def kinds(result):
    return collections.Counter(notice["kind"] for notice in result.stats["notices"])


class HookBudgetTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def record(self, targets, *arguments, seconds=SECONDS):
        pids = [str(target.host_pid) for target in ([targets] if isinstance(targets, harness.Target) else targets)]
        result = harness.record("--pid", ",".join(pids), "--duration", f"{seconds}s", "--frequency", "199", *arguments, timeout=seconds + 60)
        self.check_result(result)
        self.assertEqual(result.stats["pauses"]["unexpected"], 0)
        for frames, _ in result.profile.stacks:
            self.assertFalse(any("[uprobes]" in frame for frame in frames), frames)
        return result

    def check_compiler_has_roles(self, result):
        """(samples in the compiler, those that say what is compiled)"""
        within = told = unknown = 0
        for frames, weight in result.profile.stacks:
            in_probe = any(frame.startswith("hook_") or "uprobe" in frame or "exc_int3" in frame for frame in frames)
            if in_probe or not any(frame.startswith("libclrjit.so") for frame in frames):
                continue
            within += weight
            told += weight if any(folded.JIT_ROLE.fullmatch(frame) for frame in frames) else 0
            unknown += weight if "[jit]" in frames else 0
        self.assertEqual(told + unknown, within)
        return within, told

    def test_a_storm_pays_no_more_than_its_budget(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                self.need_runtime(version)
                with harness.workload(version, "storm", "--seconds", 120) as target:
                    target.outrank()
                    time.sleep(3)
                    limited = self.record(target)
                    free = self.record(target, "--hook-budget", "0", seconds=5)
                counts, compiled = limited.stats["pauses"], limited.stats["jit"]
                # A compilation without a probe at its beginning is one hit, and the other ones are two.
                hits = counts["events"] + 2 * compiled["compilations"] - compiled["began_by_stack"] + counts["hits_while_detached"]
                cost = hits * LEAST_HIT_SECONDS
                within, told = self.check_compiler_has_roles(limited)
                print(f"    {version}: {hits} hits, at least {100 * cost / SECONDS:.2f} % of a CPU; {counts['detachments']} rests, {counts['detached_ms']} ms; "
                      f"{told} of {within} samples in the compiler say of what", flush=True)
                self.assertLess(cost, SHARE * (SECONDS + AT_ONCE_SECONDS))
                self.assertGreaterEqual(counts["detachments"], 2, "the probes come back")
                self.assertLess(counts["detached_ms"], 1000 * (SECONDS + 1))
                self.assertGreater(counts["pauses"], 100)
                self.assertGreater(compiled["compilations"], 500)
                # A pause that is under way as probes come back has four events left, and two threads may ask for one as they go.
                self.assertLessEqual(counts["cut"], 6 * (counts["detachments"] + 1))
                self.assertEqual(kinds(limited)["probes_detached"], 1)
                self.assertGreater(within, 50)
                self.assertGreater(told, 0)
                self.assertLess(told, within)
                # Without a limit nothing is detached.
                within, told = self.check_compiler_has_roles(free)
                self.assertEqual((free.stats["pauses"]["detachments"], free.stats["pauses"]["hits_while_detached"], kinds(free)["probes_detached"]), (0, 0, 0))
                self.assertGreaterEqual(told, 0.95 * within)
                free_hits = free.stats["pauses"]["events"] + free.stats["jit"]["compilations"]
                self.assertGreater(free_hits / 5, 2 * hits / SECONDS, "the storm was one")

    def test_compilations_rest_and_pauses_are_still_seen(self):
        """`expr` compiles 3,000 methods a second and collects now and then."""
        version = VERSIONS[-1]
        self.need_runtime(version)
        with harness.workload(version, "expr", "--seconds", 120) as target, Watcher("pauses", target.host_pid) as watcher:
            target.outrank()
            result = self.record(target)
            seen = watcher.finish()
        counts, compiled = result.stats["pauses"], result.stats["jit"]
        print(f"    {counts['detachments']} rests, {counts['detached_ms']} ms, {counts['pauses']} pauses, {compiled['compilations']} compilations", flush=True)
        self.assertGreaterEqual(counts["detachments"], 1)
        self.assertEqual(compiled["hits_while_detached"], counts["hits_while_detached"])
        # The watcher sees some time before and after the recording.
        end = max(line["time_ns"] for line in seen)
        within = [line for line in seen if line["time_ns"] > end - (SECONDS - 1) * 1e9]
        self.assertGreaterEqual(counts["pauses"], 0.95 * len(within) - 2)

    @harness.in_matrix
    def test_a_storm_beside_the_one_that_is_recorded_pays_no_more_either(self):
        """Probes are in a file: all that map it run into them, unless one process alone is recorded and the kernel can bind them to it."""
        version = VERSIONS[-1]
        self.need_runtime(version)
        with harness.workload(version, "storm", "--seconds", 120) as storm, harness.workload(version, "split", "--seconds", 120) as quiet, \
                harness.workload(version, "split", "--seconds", 120) as another:
            storm.outrank()
            time.sleep(2)
            alone = self.record(quiet, seconds=4)
            limited = self.record((quiet, another))
            free = self.record((quiet, another), "--hook-budget", "0", seconds=4)
        if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 10):
            self.assertEqual((alone.stats["pauses"]["events_of_others"], alone.stats["pauses"]["detachments"]), (0, 0))
        others = [result.stats["pauses"]["events_of_others"] for result in (limited, free)]
        print(f"    {others[0]} hits of the other in {SECONDS} s, {others[1]} in 4 s without a limit; {limited.stats['pauses']['detachments']} rests", flush=True)
        self.assertGreater(others[1] / 4, 2 * others[0] / SECONDS, "the storm was one")
        self.assertLess(others[0] * LEAST_HIT_SECONDS, SHARE * (SECONDS + AT_ONCE_SECONDS))
        self.assertGreaterEqual(limited.stats["pauses"]["detachments"], 2, "pauses and compilations")
        said = [n for n in limited.stats["notices"] if n["kind"] == "probes_detached"]
        self.assertEqual(len(said), 1)
        self.assertIn(f"process {storm.host_pid}, which is not recorded, ", str(said))
        self.assertEqual(limited.stats["pauses"]["unexpected"], 0)

    def test_who_asks_for_pauses_gets_all(self):
        version = VERSIONS[-1]
        self.need_runtime(version)
        with harness.workload(version, "storm", "--seconds", 60) as target:
            target.outrank()
            time.sleep(2)
            with Watcher("pauses", target.host_pid) as watcher:
                time.sleep(6)
                pauses = watcher.finish()
        collected = [p["gc_index"] for p in pauses if p.get("gc_index") is not None and p["kind"] == "blocking"]
        print(f"    {len(pauses)} pauses", flush=True)
        self.assertGreater(len(collected), 1000)
        self.assertEqual(collected, list(range(collected[0], collected[0] + len(collected))))


if __name__ == "__main__":
    harness.main()
