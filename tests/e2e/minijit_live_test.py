#!/usr/bin/env python3
"""The native mini-JIT: a jitdump without any .NET, and one address that holds two methods one after the other."""

import folded
import harness

FREQUENCY = 999

class MiniJitTest(harness.LiveTest):
    NEEDS = ("minijit",)

    def check_flame_graph(self, result, truth, frequency=FREQUENCY):
        profile = self.check_result(result, minimum_samples=300)
        counts = {"leaf_tier0": 0, "leaf_tier1": 0}
        whole = 0
        for frames, count in profile.stacks:
            names = [folded.bare(f) for f in frames]
            found = [n for n in names if n in counts]
            if not found:
                continue
            self.assertEqual(len(found), 1, f"two leaves in one stack: {frames}")
            counts[found[0]] += count
            at = names.index(found[0])
            whole += count if names[max(at - 2, 0):at] == ["outer", "middle"] else 0
        total = sum(counts.values())
        self.assertGreater(total, 0.95 * profile.total, result)
        self.assertGreaterEqual(whole, 0.95 * profile.total, result.out)
        self.assertGreater(min(counts.values()), 0, "both methods ran")
        if truth is None:
            return
        true_share = truth["leaf_tier1"] / (truth["leaf_tier0"] + truth["leaf_tier1"])
        # 5 sigma of independent samples. The run began a moment after the target did: 1 % more, and what that moment was.
        missed = result.unsampled_ns / (total * harness.period_ns(frequency))
        self.assert_within(abs(counts["leaf_tier1"] / total - true_share), 5 * harness.sigma(true_share, total) + 0.01 + missed, counts)

    def test_expected_flame_graph(self):
        result = harness.record("--frequency", str(FREQUENCY), "--", harness.MINIJIT, "--seconds", "4")
        # The command's output is its own: it may come through on ours.
        with harness.Target([harness.MINIJIT, "--seconds", "4"]) as target:
            other = harness.record_to_end(target, FREQUENCY)  # the end of the target ends the run
            truth = target.truth()
        self.check_flame_graph(other, truth)
        self.check_flame_graph(result, None)  # another run, whose shares only it could tell

    def test_private_namespace(self):
        with harness.Target([harness.MINIJIT, "--seconds", "4"], namespace=True) as target:
            self.assertNotEqual(target.pid, target.host_pid)
            result = harness.record_to_end(target, FREQUENCY)
            self.check_flame_graph(result, target.truth())

    def test_follows_an_exec(self):
        result = harness.record("--frequency", str(FREQUENCY), "--", "sh", "-c", f"sleep 0.3; exec {harness.MINIJIT} --seconds 3")
        profile = self.check_result(result, minimum_samples=300)
        self.assertGreater(profile.with_frame(lambda f: f == "middle"), 0.9 * profile.total, result)
        renamed = sum(count for frames, count in profile.stacks if frames[0] == "minijit")
        self.assertGreater(renamed, 0.9 * profile.total, "the command name is the one at the time of the sample")

    def test_perf_map_beside_the_jitdump(self):
        with harness.Target([harness.MINIJIT, "--seconds", "4", "--perf-map"]) as target:
            result = harness.record_to_end(target, FREQUENCY)
            self.check_flame_graph(result, target.truth())


if __name__ == "__main__":
    harness.main()
