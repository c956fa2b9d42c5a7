#!/usr/bin/env python3
"""Managed frames carry their names: every runtime, every value of DOTNET_PerfMapEnabled, in steady state and in the first second."""
import re
import unittest

import harness
import runtimes

VERSIONS = (*runtimes.PACKED_VERSIONS, runtimes.INSTALLED)
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
        for version in VERSIONS:
            for perf_map in (1, 2, 3):
                with self.subTest(version=version, PerfMapEnabled=perf_map):
                    self.need_runtime(version)
                    result = self.steady(version, perf_map)
                    self.check_managed_named(result)
                    if perf_map == 2 and runtimes.jitdump_is_broken(version):
                        self.check_broken_jitdump(result)

    def test_first_second(self):
        self.each_startup(namespace=False)

    def test_first_second_in_a_namespace(self):
        self.each_startup(namespace=True)

    def each_startup(self, namespace):
        for version in VERSIONS:
            for perf_map in (1, 2, 3):
                with self.subTest(version=version, PerfMapEnabled=perf_map, namespace=namespace):
                    self.need_runtime(version)
                    result = self.startup(version, perf_map, namespace)
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
        for version in VERSIONS:
            with self.subTest(version=version):
                self.need_runtime(version)
                perf_map = 1
                with harness.workload(version, "jit", "--seconds", 300, perf_map=perf_map) as target:
                    result, _ = harness.record_window(target, 1.5, 499)
                profile = self.check_result(result, minimum_samples=200)
                self.check_managed_named(result)
                self.assertGreater(profile.with_frame(lambda f: re.search(r"\bEmitted\d+$", f)), 20, result)

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
