#!/usr/bin/env python3
"""Stacks are whole and exact: tests/apps/shapes says which there can be, stack_truth.py judges what the profiler shows.

In each mode 99.9 % of the stacks must be right frame for frame, from the thread's start to the leaf, and none may have a frame that is not there.

  stacks_live_test.py                          each mode on one runtime, and some modes on all: at most 90 seconds
  CLRSAMPLER_STACKS=full stacks_live_test.py   each mode and each way of compiling on all runtimes
  CLRSAMPLER_STACKS_CASES=REGEX                only cases whose name (`8.0.30 chains tier-1`) matches
"""
import collections
import json
import os
import re

import deployments
import harness
import runtimes
import stack_truth

NATIVE = os.environ.get("SHAPES_NATIVE", os.path.join(runtimes.SOURCE, "build", "release", "tests", "apps", "libshapes_native.so"))
PROJECT = os.path.join(runtimes.SOURCE, "tests", "apps", "shapes", "shapes.csproj")
VERSIONS = runtimes.ALL
SHARE = 0.999
FREQUENCY = 997
CPU_SECONDS = {"full": 2.0, "": 1.0}
# The program does nothing else: a profile in which few stacks can be judged proves nothing.
LEAST_JUDGED = 0.95
# Threads of a pool that have no work spin for a while before they sleep.
LEAST_JUDGED_OF = {"async": 0.6}
# Each chain must have been seen to its leaf.
LEAST_WHOLE = 3

# How the program's methods are compiled: (environment, deployment form or None). Nothing rises to the next tier before its delay is over.
_STAY = {"DOTNET_TC_CallCountingDelayMs": "600000"}
VARIANTS = {
    "default": ({}, None),
    "tier-0": ({**_STAY, "DOTNET_TieredPGO": "0", "DOTNET_TC_OnStackReplacement_InitialCounter": "7fffffff"}, None),
    "tier-1": ({"DOTNET_TieredPGO": "0", "DOTNET_TC_CallCountingDelayMs": "0", "DOTNET_TC_BackgroundWorkerTimeoutMs": "0"}, None),
    "instrumented": ({**_STAY, "DOTNET_TieredPGO": "1", "DOTNET_TieredPGO_InstrumentOnlyHotCode": "0"}, None),
    "full": ({"DOTNET_TieredCompilation": "0"}, None),
    "r2r": ({**_STAY, "DOTNET_TieredPGO": "0"}, "r2r"),
}
MODES = ("framed", "chains", "tiny", "recursion", "structs", "localloc", "generics", "delegates", "interfaces", "tail-calls", "exceptions", "retries", "async",
         "callbacks", "suppressed", "sorts", "foreign", "osr")
COMPILED = ("chains", "tiny", "structs", "localloc", "exceptions", "callbacks")  # modes whose frames differ most from compiler to compiler


class Case(collections.namedtuple("Case", "version mode variant")):
    def __str__(self):
        return " ".join(self)


def full_matrix():
    for version in VERSIONS:
        for mode in MODES:
            yield Case(version, mode, "default")
        for mode in COMPILED:
            for variant in VARIANTS:
                if variant != "default":
                    yield Case(version, mode, variant)


def selection():
    for mode in MODES:
        yield Case("11.0.0", mode, "default")
    for version in ("8.0.30", "9.0.19", "10.0.14"):
        yield Case(version, "chains", "default")
    yield Case("8.0.30", "retries", "default")
    yield Case("10.0.14", "osr", "default")
    yield Case(runtimes.INSTALLED, "chains", "default")
    for variant in ("instrumented", "full"):
        yield Case("9.0.19", "chains", variant)


FULL = os.environ.get("CLRSAMPLER_STACKS", "")


def cases():
    pattern = re.compile(os.environ.get("CLRSAMPLER_STACKS_CASES", ""))
    return [case for case in (full_matrix() if FULL == "full" else selection()) if pattern.search(str(case))]


def start(case):
    env, form = VARIANTS[case.variant]
    if form is None:
        command, additions = runtimes.command(case.version, program="shapes")
    else:
        command, additions = deployments.publish(form, case.version, PROJECT), {}
    return harness.Target([*command, case.mode, "--seconds", "120", "--native", NATIVE], env={**additions, **env})


def truth_of(target):
    (text,) = [line for line in target.output if line.startswith("chains ")]
    return stack_truth.Truth(json.loads(text.removeprefix("chains ")))


class StacksTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    @classmethod
    def check_needs(cls):
        super().check_needs()
        if not os.path.exists(NATIVE):
            raise harness.Missing(f"no library at {NATIVE}; build it, or name it in SHAPES_NATIVE")

    def run_case(self, case):
        with start(case) as target:
            truth = truth_of(target)
            result, _ = harness.record_window(target, CPU_SECONDS[FULL], FREQUENCY, "--max-frames", "1024")
        profile = self.check_result(result, minimum_samples=int(0.8 * CPU_SECONDS[FULL] * FREQUENCY))
        return result, profile, truth, stack_truth.judge(profile, truth)

    def check(self, case, verdict, truth, profile):
        self.assertEqual(verdict.counts["invented"], 0, f"{case}: {verdict}")
        self.assertGreaterEqual(verdict.judged, LEAST_JUDGED_OF.get(case.mode, LEAST_JUDGED) * profile.total, f"{case}: {verdict}\n{verdict.worst(kinds=('elsewhere',))}")
        # So many wrong ones may be chance in so few samples; all cases together have enough of them.
        self.assert_within(verdict.faults, stack_truth.allowed_faults(verdict.judged, SHARE), f"{case}: {verdict}")
        seldom = {truth.name(chain): verdict.whole[chain] for chain in range(truth.required) if verdict.whole[chain] < LEAST_WHOLE}
        self.assertEqual(seldom, {}, f"{case}: chains that were not seen to their leaves; {verdict}")

    def test_stacks(self):
        by_mode = collections.defaultdict(lambda: [0, 0])
        for case in cases():
            with self.subTest(str(case)):
                try:
                    _, profile, truth, verdict = self.run_case(case)
                except harness.Missing as reason:
                    self.unavailable(str(reason))
                by_mode[case.mode][0] += verdict.judged
                by_mode[case.mode][1] += verdict.faults
                print(f"{case}: {100 * verdict.share:.3f} % of {verdict.judged} exact; " + ", ".join(f"{n} {k}" for k, n in verdict.counts.items() if n), flush=True)
                self.check(case, verdict, truth, profile)
        if FULL == "full":
            for mode, (judged, faults) in by_mode.items():
                with self.subTest(pooled=mode):
                    self.assertLessEqual(faults, stack_truth.allowed_faults(judged, SHARE), f"{mode}: of {judged} stacks on all runtimes")
        judged, faults = (sum(counts[i] for counts in by_mode.values()) for i in (0, 1))
        self.assertLessEqual(faults, stack_truth.allowed_faults(judged, SHARE), f"of {judged} stacks in all modes")


class JudgeSeesTest(harness.LiveTest):
    """The judge on real stacks, which frame pointers alone show whole, and on changed truths: it must notice, or the test above proves nothing."""

    NEEDS = ("dotnet",)

    def test_changed_truths(self):
        with start(Case(runtimes.INSTALLED, "framed", "default")) as target:
            (text,) = [line for line in target.output if line.startswith("chains ")]
            result, _ = harness.record_window(target, 0.5, FREQUENCY, "--max-frames", "1024")
        data = json.loads(text.removeprefix("chains "))
        (chain,) = data["chains"]
        verdict = stack_truth.judge(result.profile, stack_truth.Truth(data))
        exact = verdict.counts["exact"]
        self.assertGreater(exact, 0.9 * verdict.judged, verdict)
        swapped = [*chain[:2], chain[3], chain[2], *chain[4:]]
        for name, changed in (("one left out", chain[:3] + chain[4:]), ("one more", [*chain[:3], "Shapes.Framed.Other", *chain[3:]]), ("two swapped", swapped),
                              ("another leaf", [*chain[:-1], "Shapes.Framed.Other"])):
            with self.subTest(name):
                changed = stack_truth.judge(result.profile, stack_truth.Truth({**data, "chains": [changed]}))
                self.assertLess(changed.counts["exact"], 0.05 * exact, changed)
                self.assertGreater(changed.counts["missing" if name == "one more" else "invented"], 0.9 * exact, changed)


if __name__ == "__main__":
    harness.main()
