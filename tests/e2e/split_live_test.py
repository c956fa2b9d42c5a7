#!/usr/bin/env python3
"""Shares and depth: a known CPU split, a deep recursion, and both inside a pid and mount namespace of their own."""
import unittest

import folded
import harness
import runtimes

VERSIONS = (*runtimes.PACKED_VERSIONS, runtimes.INSTALLED)
FREQUENCY = 499


class SplitTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def check_split(self, version, namespace):
        with harness.workload(version, "split", "--seconds", 7, perf_map=1, namespace=namespace) as target:
            result = harness.record("--pid", str(target.host_pid), "--duration", "5s", "--frequency", str(FREQUENCY))
            truth = target.truth()
        profile = self.check_result(result, minimum_samples=500)
        self.check_managed_named(result)
        burners = ("BurnA", "BurnB", "BurnC")
        counts = {b: 0 for b in burners}
        whole = {b: 0 for b in burners}
        for frames, count in profile.stacks:
            names = [folded.bare(f) for f in frames]
            for burner in burners:
                if f"Workload.SplitMode.{burner}" not in names:
                    continue
                at = names.index(f"Workload.SplitMode.{burner}")
                counts[burner] += count
                want = ["Workload.SplitMode.Run"] + [f"Workload.SplitMode.Chain{burner[-1]}{i}" for i in (1, 2, 3, 4)]
                whole[burner] += count if names[max(at - 5, 0):at] == want else 0
        total = sum(counts.values())
        # The program does nothing else: a burner is in nearly every sample.
        self.assertGreater(total, 0.97 * profile.total, result)
        cpu = sum(truth[b] for b in burners)
        for burner in burners:
            share, true_share = counts[burner] / total, truth[burner] / cpu
            self.assertLess(abs(share - true_share), 3 * harness.sigma(true_share, total) + 0.002,
                            f"{burner}: {share:.4f} of the samples, {true_share:.4f} of the CPU time")
            self.assertGreaterEqual(whole[burner], 0.99 * counts[burner], f"{burner}: chains cut short\n{result.out[:3000]}")
        samples = result.stats["samples"]
        self.assertLess(abs(samples["taken"] - samples["expected"]), 0.1 * samples["expected"] + 20, samples)

    def check_recursion(self, version, namespace):
        with harness.workload(version, "recurse", "--seconds", 20, "--depth", 120, perf_map=1, namespace=namespace) as target:
            result = harness.record("--pid", str(target.host_pid), "--duration", "3s", "--frequency", str(FREQUENCY))
        profile = self.check_result(result, minimum_samples=300)
        self.check_managed_named(result)
        whole = seen = 0
        for frames, count in profile.stacks:
            names = [folded.bare(f) for f in frames]
            if "Workload.RecurseMode.BurnDeep" not in names:
                continue
            at = names.index("Workload.RecurseMode.BurnDeep")
            seen += count
            calls = ["Workload.RecurseMode.Run"] + ["Workload.RecurseMode.Recurse"] * 120
            whole += count if names[max(at - 121, 0):at] == calls else 0
        self.assertGreater(seen, 0.9 * profile.total, result)
        self.assertGreaterEqual(whole, 0.99 * seen, f"{whole} of {seen} whole\n{result.out[:3000]}")

    def each_version(self, check, namespace):
        for version in VERSIONS:
            with self.subTest(version=version, namespace=namespace):
                self.need_runtime(version)
                check(version, namespace)

    def test_known_split(self):
        self.each_version(self.check_split, namespace=False)

    def test_known_split_in_a_namespace(self):
        self.each_version(self.check_split, namespace=True)

    def test_recursion_of_120_calls(self):
        self.each_version(self.check_recursion, namespace=False)

    def test_recursion_of_120_calls_in_a_namespace(self):
        self.each_version(self.check_recursion, namespace=True)


if __name__ == "__main__":
    harness.main()
