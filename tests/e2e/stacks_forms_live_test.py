#!/usr/bin/env python3
"""Whole stacks in each form in which people deploy .NET programs: tests/apps/shapes says which there can be (stack_truth.py).

  STACKS_FORMS=REGEX         only cases whose name (`8.0.30 single-file chains`) matches
"""
import os
import re

import deployments
import harness
import stack_truth
import stacks_live_test

# Forms differ in where code and its unwind data lie: in an image, at an offset of the host, in memory only, in ELF.
MODES = ("chains", "tiny", "structs", "exceptions", "callbacks", "sorts", "osr")
VERSIONS = ("8.0.30", "10.0.14")
CPU_SECONDS = 1.0
# NativeAOT compiles no method while it runs, and has no tiers.
NOT_AHEAD = ("osr",)
# Without symbols there are no names to judge by.
FORMS = [form for form in deployments.FORMS if form not in ("framework-dependent", "native-aot-stripped")]


class StacksFormsTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def programs(self):
        for version in VERSIONS:
            for form in FORMS:
                if not any(re.search(os.environ.get("STACKS_FORMS", ""), f"{version} {form} {mode}") for mode in MODES):
                    continue
                try:
                    yield version, form, deployments.publish(form, version, stacks_live_test.PROJECT)
                except harness.Missing as reason:
                    known = deployments.KNOWN_MISSING.get((form, version))
                    print(f"SKIPPED {version} {form}: {known or reason}", flush=True)
                    if harness.REQUIRE_LIVE and not known:
                        raise

    def test_stacks_are_exact_in_every_form(self):
        judged = faults = 0
        for version, form, argv in self.programs():
            for mode in MODES:
                name = f"{version} {form} {mode}"
                if not re.search(os.environ.get("STACKS_FORMS", ""), name) or (form.startswith("native-aot") and mode in NOT_AHEAD):
                    continue
                with self.subTest(name):
                    with harness.Target([*argv, mode, "--seconds", "120", "--native", stacks_live_test.NATIVE]) as target:
                        truth = stacks_live_test.truth_of(target)
                        result, _ = harness.record_window(target, CPU_SECONDS, stacks_live_test.FREQUENCY)
                    profile = self.check_result(result, minimum_samples=int(0.8 * CPU_SECONDS * stacks_live_test.FREQUENCY))
                    verdict = stack_truth.judge(profile, truth)
                    print(f"{name}: {verdict}", flush=True)
                    judged += verdict.judged
                    faults += verdict.faults
                    self.assertEqual(verdict.counts["invented"], 0, verdict)
                    self.assertLessEqual(verdict.faults, stack_truth.allowed_faults(verdict.judged, stacks_live_test.SHARE), verdict)
                    self.assertGreaterEqual(verdict.judged, stacks_live_test.LEAST_JUDGED * profile.total, verdict)
        if not judged:
            self.unavailable("no form could be published")
        self.assertLessEqual(faults, (1 - stacks_live_test.SHARE) * judged + 1, f"of {judged} stacks in all forms")


if __name__ == "__main__":
    harness.main()
