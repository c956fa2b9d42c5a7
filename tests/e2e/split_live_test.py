#!/usr/bin/env python3
"""Shares and depth: a known CPU split, a deep recursion, and both inside a pid and mount namespace of their own; and the account against
the targets' own CPU clocks."""
import itertools
import json

import folded
import harness
import runtimes

FREQUENCY = 1499


class SplitTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def check_split(self, version, perf_map, namespace):
        with harness.workload(version, "split", "--seconds", 300, perf_map=perf_map, namespace=namespace) as target:
            result, window = harness.record_window(target, 3, FREQUENCY)
            truth = target.end()
        profile = self.check_result(result, minimum_samples=500)
        self.check_window(result, window, FREQUENCY)
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
            # 5 sigma of independent samples. With 4,000 of them it finds one sample in 25 that is given to the wrong chain.
            self.assert_within(abs(share - true_share), 5 * harness.sigma(true_share, total),
                               f"{burner}: {share:.4f} of the samples, {true_share:.4f} of the CPU time")
            self.assertGreaterEqual(whole[burner], 0.99 * counts[burner], f"{burner}: chains cut short\n{result.out[:3000]}")

    def check_recursion(self, version, perf_map, namespace):
        with harness.workload(version, "recurse", "--seconds", 300, "--depth", 120, perf_map=perf_map, namespace=namespace) as target:
            result, window = harness.record_window(target, 1, FREQUENCY)
        profile = self.check_result(result, minimum_samples=300)
        self.check_window(result, window, FREQUENCY)
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

    def each(self, check, namespace, chosen):
        """chosen: pairs of a version and PerfMapEnabled; all of them in the matrix."""
        for version, perf_map in itertools.product(runtimes.ALL, (1, 2, 3)) if runtimes.MATRIX else chosen:
            with self.subTest(version=version, PerfMapEnabled=perf_map, namespace=namespace):
                self.need_runtime(version)
                if perf_map == 2 and runtimes.jitdump_is_broken(version):
                    continue  # no names: names_live_test.py
                check(version, perf_map, namespace)

    def test_known_split(self):
        self.each(self.check_split, False, (("8.0.30", 1), ("10.0.14", 1)))

    def test_known_split_in_a_namespace(self):
        self.each(self.check_split, True, (("8.0.30", 3), ("9.0.19", 1), ("10.0.14", 2)))

    def test_recursion_of_120_calls(self):
        self.each(self.check_recursion, False, (("10.0.14", 1),))

    def test_recursion_of_120_calls_in_a_namespace(self):
        self.each(self.check_recursion, True, (("9.0.19", 2),))

    def test_whole_life_of_a_command(self):
        """From the first instruction to the last: the account against what two busy threads say they used."""
        command, additions = runtimes.command(runtimes.INSTALLED, "mix", "--seconds", "3", "--threads", "2")
        steal = harness.steal_seconds()
        result = harness.record("--frequency", str(FREQUENCY), "--", *command, env={**additions, "DOTNET_PerfMapEnabled": "1"})
        self.check_result(result, minimum_samples=500)
        (truth,) = [json.loads(line[6:]) for line in result.stdout.splitlines() if line.startswith("truth ")]
        true = truth["cpu_ns"] / harness.period_ns(FREQUENCY)
        samples = result.stats["samples"]
        # It says so at its very end, and then the runtime shuts down.
        self.assertGreaterEqual(samples["expected"], true - 0.02 * FREQUENCY, samples)
        self.assertLessEqual(samples["expected"], true + 0.2 * FREQUENCY, samples)
        # 5 sigma of independent samples, and what a hypervisor swallows.
        steal = harness.steal_seconds() - steal
        self.assert_within(abs(samples["taken"] - samples["expected"]),
                           5 * samples["expected"] ** 0.5 + 0.01 * samples["expected"] + steal * FREQUENCY, samples)


if __name__ == "__main__":
    harness.main()
