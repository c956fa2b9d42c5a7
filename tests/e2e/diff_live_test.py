#!/usr/bin/env python3
"""Differences that diff finds in real recordings: nothing where nothing has changed, and the method that has become slower where one has.

CLRSAMPLER_DIFF=full: 20 pairs. All recordings are of one process: two starts of a program differ, in the load of the machine, in memory
and in what the JIT makes of it, by more than sampling does.
"""
import os
import re
import signal
import subprocess
import tempfile

import folded
import harness
import runtimes

FULL = os.environ.get("CLRSAMPLER_DIFF") == "full"
PAIRS = 20 if FULL else 5
SLOWER = "Workload.CompareMode.Price"
WARM_UP_CPU = 10  # seconds; by then the runtime has compiled all that it compiles again


class Diff:
    """The output of the command."""

    def __init__(self, before, after, *arguments):
        done = subprocess.run([harness.AGENT, "diff", before, after, "--top", "100000", *arguments], capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise AssertionError(done.stderr)
        self.text = done.stdout
        row = r" *([\d.]+) % +([\d.]+) % +([-+][\d.]+) %( [*~])? +([-+][\d.]+) %( [*~])? +(.*)"
        self.rows = [match for match in (re.fullmatch(row, line) for line in self.text.splitlines()) if match]

    def marked(self):
        return [row[0] for row in self.rows if "*" in (row[4] or "") + (row[6] or "")]


class DiffTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="clrsampler-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.recordings = 0

    def start(self, more=0):
        target = harness.workload(runtimes.INSTALLED, "compare", "--seconds", 900, "--threads", 2, "--more", more)
        self.addCleanup(target.stop)
        target.use_cpu(WARM_UP_CPU)
        return target

    def record(self, target, cpu_seconds, frequency):
        """As long as it takes to use so much CPU time: as many samples on a crowded machine."""
        self.recordings += 1
        path = os.path.join(self.folder, f"{self.recordings}.json")
        agent = harness.Agent(("--pid", str(target.host_pid), "--frequency", str(frequency), "-o", path))
        agent.wait_until_sampling()
        target.use_cpu(cpu_seconds)
        agent.interrupt()
        result = agent.finish(180)
        self.assertEqual(result.status, 0, result)
        return path

    def false_alarms(self, target, pairs):
        paths = [self.record(target, 1.5, 1999) for _ in range(pairs + 1)]
        diffs = [Diff(before, after) for before, after in zip(paths, paths[1:])]
        for diff in diffs:
            self.assertGreater(len(diff.rows), 20, diff.text)
        return [diff.marked() for diff in diffs if diff.marked()]

    def test_recordings_of_the_same_program_do_not_differ(self):
        target = self.start()
        alarms = self.false_alarms(target, PAIRS)
        pairs = PAIRS
        if len(alarms) > 1:
            # By chance two in 20 may come: 3 % of the pairs at most have a mark. 5 % of many have not.
            alarms += self.false_alarms(target, 40)
            pairs += 40
        print(f"{len(alarms)} of {pairs} pairs of recordings have a mark")
        self.assertLessEqual(len(alarms), max(1, 0.05 * pairs), "\n".join(map(str, alarms)))

    def check_found(self, before, after):
        diff = Diff(before, after)
        first = diff.rows[0]
        self.assertEqual((first[7], first[4]), (SLOWER, " *"), diff.text[:4000])
        self.assertGreater(float(first[3]), 0)
        print(first[0])
        return diff

    def test_a_method_that_takes_a_tenth_longer_is_first(self):
        target = self.start(more=10)
        parts = ([], [])
        # By turns, and added up: what else the machine does meanwhile is the same for both.
        for turn in range(16):
            parts[turn % 2].append(self.record(target, 3, 4999))
            target.signal(signal.SIGUSR1)
        before, after = (self.merged(part) for part in parts)
        self.check_two_columns(before, after, self.check_found(before, after))

    def merged(self, paths):
        path = f"{paths[0]}.merged.json"
        subprocess.run([harness.AGENT, "merge", *paths, "-o", path], check=True, timeout=120)
        return path

    def check_two_columns(self, before, after, diff):
        """The file for flamegraph.pl has the counts of both recordings, the first ones as if both were of the same length."""
        path = os.path.join(self.folder, "diff.folded")
        Diff(before, after, "-o", path)
        with open(path, "rb") as f:
            data = f.read()
        self.assertEqual(folded.check_difference(data), [])
        rows = folded.parse_difference(data)
        self.assertEqual(folded.flamegraph_rows(data), rows)
        totals = [folded.parse(self.converted(path)).total for path in (before, after)]
        self.assertEqual(sum(count for _, _, count in rows), totals[1])
        self.assertLessEqual(abs(sum(count for _, count, _ in rows) - totals[1]), 0.5 * len(rows))
        slower = [sum(row[column] for row in rows if row[0][-1] == SLOWER + "_[j]") for column in (1, 2)]
        shares = [100 * count / totals[1] for count in slower]
        self.assertAlmostEqual(shares[0], float(diff.rows[0][1]), delta=0.02)
        self.assertAlmostEqual(shares[1], float(diff.rows[0][2]), delta=0.02)

    def converted(self, path):
        return subprocess.run([harness.AGENT, "convert", path, "-", "--format", "folded"], capture_output=True, check=True, timeout=300).stdout


if __name__ == "__main__":
    harness.main()
