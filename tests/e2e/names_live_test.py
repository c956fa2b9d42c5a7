#!/usr/bin/env python3
"""Managed frames carry their names: every runtime, every value of DOTNET_PerfMapEnabled, in steady state and in the first second."""
import collections
import functools
import glob
import itertools
import json
import os
import re
import tempfile

import harness
import runtimes
from metadata import Metadata

FRAMEWORK = re.compile(r"^(System|Microsoft|Internal|Interop)\b")


class NamesTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def check_version(self, result, version):
        (process,) = [p for p in result.stats["processes"] if p["runtime"]]
        self.assertEqual(process["runtime"], runtimes.number(version))
        return process

    def steady(self, version, perf_map):
        with harness.workload(version, "mix", "--seconds", 300, "--threads", 2, perf_map=perf_map) as target:
            result, _ = harness.record_window(target, 2, 499)
        profile = self.check_result(result, minimum_samples=300)
        self.check_version(result, version)
        # The mix serialises, matches, sorts and awaits: our methods and the framework's must both show up by name.
        self.assertGreater(profile.with_frame(lambda f: f.startswith("Workload.Loops.")), 50, result)
        self.assertGreater(profile.with_frame(lambda f: f.startswith("System.Text.RegularExpressions.")), 10, result)
        self.assertGreater(profile.with_frame(lambda f: f.startswith("System.Text.Json.")), 10, result)
        return result

    def startup(self, version, perf_map, namespace=False):
        command, additions = runtimes.command(version, "startup", "--seconds", "0.7")
        additions["DOTNET_PerfMapEnabled"] = str(perf_map)
        if namespace:
            command = harness.in_namespace(command)
        result = harness.record("--frequency", "999", "--", *command, env=additions)
        profile = self.check_result(result, minimum_samples=200)
        self.check_version(result, version)
        framework = sum(count for frame, count in profile.frames("j").items() if FRAMEWORK.match(frame))
        # Ready-to-run code is most of a start-up: a profile without the framework would be one that lost it.
        self.assertGreater(framework, 500, result)
        return result

    def test_steady_state(self):
        self.each((("8.0.30", 2), ("9.0.19", 1), ("10.0.14", 3), (runtimes.INSTALLED, 2)), self.steady)

    def test_first_second(self):
        self.each((("8.0.30", 1), ("10.0.14", 2)), functools.partial(self.startup, namespace=False))

    def test_first_second_in_a_namespace(self):
        self.each((("9.0.19", 3),), functools.partial(self.startup, namespace=True))

    def each(self, chosen, run):
        """chosen: pairs of a version and PerfMapEnabled; all of them in the matrix."""
        for version, perf_map in itertools.product(runtimes.ALL, (1, 2, 3)) if runtimes.MATRIX else chosen:
            with self.subTest(version=version, PerfMapEnabled=perf_map):
                self.need_runtime(version)
                result = run(version, perf_map)
                self.check_managed_named(result)
                if perf_map == 2 and runtimes.jitdump_is_broken(version):
                    self.check_broken_jitdump(result)

    # .NET 10 up to 10.0.12 writes two records into its jitdump and stops. With 2 there is no perf map either: the run says so, and
    # names come from the runtime's memory.
    def check_broken_jitdump(self, result):
        self.assertRegex(result.err.lower(), r"jitdump")
        self.assertRegex(result.err, r"10\.0\.|PerfMapEnabled")
        self.assertGreater(result.stats["frames"]["by_source"]["memory"], 100, result)

    def test_perf_map_is_used_where_the_jitdump_is_broken(self):
        if not runtimes.jitdump_is_broken(runtimes.INSTALLED):
            self.skipTest(f"the installed runtime {runtimes.installed_version()} writes its jitdump fully")
        result = self.steady(runtimes.INSTALLED, 1)
        self.check_managed_named(result)
        self.assertRegex(result.err.lower(), "jitdump")
        self.assertIn("perf-map", self.check_version(result, runtimes.INSTALLED)["symbol_sources"], result)

    def test_dynamic_methods(self):
        for version in runtimes.selected():
            with self.subTest(version=version):
                self.need_runtime(version)
                perf_map = 1
                with harness.workload(version, "jit", "--seconds", 300, perf_map=perf_map) as target:
                    result, _ = harness.record_window(target, 3, 499)
                profile = self.check_result(result, minimum_samples=200)
                self.check_managed_named(result)
                # Most of the time goes to the compiler: 2.7 % to 5 % of some 1,500 samples are in these. Ten are 4.8 sigma below the least.
                self.assertGreater(profile.with_frame(lambda f: re.search(r"\bEmitted\d+$", f)), 10, result)

    def runtime_functions(self, version, *arguments):
        """Samples of functions that the runtime's own tables name: [(name, names of the callers, innermost first, weight)]."""
        command, additions = runtimes.command(version, *arguments)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cpu.json")
            result = harness.record("--frequency", "999", "-o", path, "--", *command, env=additions)
            self.assertEqual(result.status, 0, result)
            with open(path, encoding="utf-8") as f:
                model = json.load(f)
        strings, frames, nodes = model["strings"], model["frames"], model["nodes"]
        weights = collections.Counter()
        for row, stack in enumerate(model["samples"]["stack"]):
            weights[stack] += model["samples"]["weight"][row] if "weight" in model["samples"] else 1
        found = []
        for leaf, weight in weights.items():
            path, at = [], leaf
            while at:
                path.append(nodes["frame"][at])
                at = nodes["parent"][at]
            names = [strings[frames["name"][frame]] for frame in path]
            found += [(names[i], names[i + 1:], weight) for i, frame in enumerate(path) if strings[frames["source"][frame]] == "runtime-table"]
        return found

    def check_callers(self, version, functions):
        """By the word of the assembly's metadata, methods of the type that imports it call an entry point of the runtime. Gives how many samples of
        such callers fit, and those that do not, since the import was inlined into a method of another type."""
        (path,) = glob.glob(os.path.join(runtimes.root(version), "shared", "Microsoft.NETCore.App", "*", "System.Private.CoreLib.dll"))
        declared = {owner: {entry for entries in methods.values() for _, entry in entries} for owner, methods in Metadata(path).imports.items()}
        known, fit, others = set().union(*declared.values()), 0, collections.Counter()
        for name, callers, weight in functions:
            caller = next((c for c in callers if not c.startswith("[")), "")
            owners = [entries for owner, entries in declared.items() if caller.startswith(owner + ".")]
            if name not in known or not owners:
                continue
            if any(name in entries for entries in owners):
                fit += weight
            else:
                others[name, caller] += weight
        return fit, others

    # The image has no symbols: "ThreadNative_SpinWait" stands in its table of what managed code may call.
    def test_functions_of_the_runtime(self):
        for version in runtimes.selected():
            with self.subTest(version=version):
                self.need_runtime(version)
                spins = self.runtime_functions(version, "contend", "--seconds", "2", "--threads", "4")
                weights = collections.Counter()
                for name, _, weight in spins:
                    weights[name] += weight
                # Before 9 it is one of the runtime's internal calls, which are called by the method that they are.
                spin = "System.Threading.Thread.SpinWaitInternal" if version.startswith("8.") else "ThreadNative_SpinWait"
                self.assertGreater(weights[spin], 100, weights)
                # A start of .NET 8 calls little that is imported, so that samples may miss it all on a crowded machine.
                starts, fit = [], 0
                for _ in range(5):
                    starts += self.runtime_functions(version, "startup", "--seconds", "0.7")
                    fit, others = self.check_callers(version, spins + starts)
                    if fit > 10:
                        break
                print(f"    {version}: {weights[spin]} samples in {spin}; {fit} have a caller that imports them, {sum(others.values())} have not", flush=True)
                # With the names in another order next to none would fit.
                self.assertGreater(fit, 0 if version.startswith("8.") else 10, others)
                self.assertGreater(fit, 4 * sum(others.values()), others)

    def test_whole_host_has_a_root_for_each_process(self):
        with harness.workload(runtimes.INSTALLED, "burn", "--seconds", 60, perf_map=3) as a, \
             harness.workload(runtimes.INSTALLED, "mix", "--seconds", 60, perf_map=3) as b:
            result = harness.record("--duration", "4s")
        profile = self.check_result(result, minimum_samples=100)
        roots = {frames[0] for frames, _ in profile.stacks}
        for pid in (a.host_pid, b.host_pid):
            self.assertTrue(any(root.endswith(f"-{pid}") for root in roots), roots)

    def test_name_styles(self):
        with harness.workload(runtimes.INSTALLED, "split", "--seconds", 300, perf_map=1) as target:
            for style, pattern in (("short", r"^Workload\.SplitMode\.BurnA$"), ("full", r"Workload\.SplitMode\.BurnA\(int\)"),
                                   ("raw", r"Workload\.SplitMode::BurnA\(int32\)")):
                with self.subTest(style=style):
                    result, _ = harness.record_window(target, 0.5, 499, "--names", style)
                    profile = self.check_result(result, minimum_samples=30)
                    self.assertGreater(profile.with_frame(re.compile(pattern).search), 10, result.out[:2000])


if __name__ == "__main__":
    harness.main()
