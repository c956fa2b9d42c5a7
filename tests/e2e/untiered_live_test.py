#!/usr/bin/env python3
"""The tier of code that takes no part in tiering, against the runtime's word in its perf map: Debug builds, NoOptimization, JITMinOpts."""
import collections
import glob
import os
import re
import subprocess
import tempfile
import time

import harness
import runtimes

VERSIONS = runtimes.selected()
# name: (program of tests/apps, environment)
WAYS = {
    "Release build": ("untiered", {}),
    "Debug build": ("untiered_debug", {}),
    "JITMinOpts": ("untiered", {"DOTNET_JITMinOpts": "1"}),
}
MAP_LINE = re.compile(r"^(?:0x)?([0-9a-f]+) (?:0x)?[0-9a-f]+ .*?\[(untiered\w*)\] (.*)\[(\w+)\]$")
UNOPTIMISED = ("MinOptJitted", "QuickJitted")
LAST_OF_THE_PROGRAM = "Untiered.Program::Emitted"


class UntieredTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def read_map(self, folder):
        """{address: (method, tier)} of the program's own code, and of stubs that belong to its module."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for path in glob.glob(os.path.join(folder, "perf-*.map")):
                with open(path, encoding="utf-8", errors="replace") as f:
                    lines = [line for line in map(MAP_LINE.match, f) if line]
                if any(LAST_OF_THE_PROGRAM in line[3] for line in lines):
                    return {int(line[1], 16): (line[3], line[4]) for line in lines}
            time.sleep(0.1)
        raise AssertionError("the runtime writes no perf map")

    def rows(self, pid, addresses, folder):
        """{address: (name, tier, kind of line)}"""
        path = os.path.join(folder, "addresses")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(f"{address:x}\n" for address in addresses)
        done = subprocess.run([harness.AGENT, "names", "--pid", str(pid), "--without", "jitdump,perf-map", "--names", "full", "--lines", "--addresses", path],
                              capture_output=True, text=True, timeout=120, check=True)
        fields = [line.split("\t") for line in done.stdout.splitlines()[1:]]
        return {int(row[0], 16): (row[7], row[6], row[11]) for row in fields}

    def check(self, version, way):
        program, environment = WAYS[way]
        command, additions = runtimes.command(version, program=program)
        with tempfile.TemporaryDirectory() as folder:
            map_environment = {"DOTNET_PerfMapEnabled": "3", "DOTNET_PerfMapShowOptimizationTiers": "1", "DOTNET_PerfMapJitDumpPath": folder}
            with harness.Target(command, env={**additions, **map_environment, **environment}) as target:
                truth = self.read_map(folder)
                found = self.rows(target.host_pid, truth, folder)
        tiers = collections.Counter()
        for address, (method, tier) in truth.items():
            if method.startswith("dynamicClass::"):
                continue  # these always read Optimized (docs/frame-names.md)
            text, ours, line_kind = found[address]
            self.assertEqual(ours, tier, f"{method}: {text}")
            self.assertIn(f"[{tier}]", text)
            if line_kind != "none":
                self.assertEqual(line_kind, "exact" if tier in UNOPTIMISED else "optimised", f"{method}: {text}")
            tiers[tier, line_kind] += 1
        print(f"    {version} {way}: {dict(tiers)}", flush=True)
        self.assertGreater(tiers["MinOptJitted", "exact"], 2)
        self.assertEqual(way == "Release build", any(tier.startswith("Optimized") for tier, _ in tiers), tiers)

    def test_tiers_are_those_of_the_perf_map(self):
        for version in VERSIONS:
            for way in WAYS:
                with self.subTest(version=version, way=way):
                    self.need_runtime(version)
                    self.check(version, way)


if __name__ == "__main__":
    harness.main()
