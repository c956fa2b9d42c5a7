#!/usr/bin/env python3
"""Are the IL maps that we read from precompiled images those that ClrMD has? Every prepared method of a process on each version.

The oracle is ClrMD (tests/apps/oracle_names), Microsoft's own debugger library with the reader of maps that ships with the runtime. It chooses
the methods: those of loaded types whose code is precompiled. R2R_CHECK reads the same images with the profiler's own code.
"""
import collections
import subprocess
import time

import check_program
import harness
import r2r_names_test
import runtimes

VERSIONS = runtimes.NEWEST_OF_EACH
MODES = ("json", "async")
# Code that is compiled again has no precompiled body any more.
PRECOMPILED = {"DOTNET_TieredCompilation": "0"}
WARM_UP_SECONDS = 3.0
LEAST_PAIRS = 10_000
# Methods of which the oracle has nothing, of all: it proves nothing about them.
MAX_SILENT = 0.02

Method = collections.namedtuple("Method", "image begin pairs")


def pairs(words, code_bytes):
    """The pairs of one body: ClrMD adds those of other instances of a generic method, and has the entries of some methods twice."""
    found = {tuple(map(int, word.split(":"))) for word in words}
    return sorted((il, native) for il, native in found if 0 <= native < code_bytes)


def parse(text):
    """Methods as ClrMD has them, out of what oracle_names prints."""
    rows = [line.split("\t") for line in text.splitlines()]
    return [Method(image, int(begin, 16), pairs(entries.split(), int(code_bytes))) for image, begin, code_bytes, entries in rows]


def told(pid):
    done = subprocess.run([runtimes.dotnet(), runtimes.app("oracle_names"), str(pid), "il-maps"], capture_output=True, text=True, timeout=180)
    if done.returncode:
        raise AssertionError(done.stderr)
    return parse(done.stdout)


def read(image):
    """{where the method begins: pairs of IL and native offset}. The last of several entries at one place counts."""
    status, output = r2r_names_test.check("il-map-entries", image)
    if status:
        raise AssertionError(output)
    maps = {}
    for line in output.splitlines():
        begin, *entries = line.split(" ")
        at = {native: il for il, native in (map(int, entry.split(":")) for entry in entries)}
        maps[int(begin, 16)] = sorted((il, native) for native, il in at.items())
    return maps


def compare(test, what, methods, read_image=read):
    """Counter of methods and pairs. `read_image`: `read` of a path as ClrMD has it."""
    ours = {image: read_image(image) for image in {method.image for method in methods}}
    counts, differ = collections.Counter(), []
    for method in methods:
        mine = ours[method.image].get(method.begin, [])
        if not method.pairs:
            counts["silent"] += 1
        elif mine == method.pairs:
            counts["equal"] += 1
            counts["pairs"] += len(mine)
        else:
            differ.append((method, mine))
    print(f"  {what}: {len(methods)} methods, {counts['equal']} equal with {counts['pairs']} pairs, {len(differ)} differ, "
          f"of {counts['silent']} ClrMD has nothing", flush=True)
    test.assertEqual(differ[:3], [])
    test.assertLessEqual(counts["silent"], MAX_SILENT * len(methods))
    return counts


class IlMapsR2rOracleTest(check_program.CheckProgramTest):
    def compare(self, version, mode):
        command, environment = self.need(runtimes.command, version, mode, "--seconds", "120")
        with harness.Target(command, env={**environment, **PRECOMPILED}) as target:
            time.sleep(WARM_UP_SECONDS)
            methods = told(target.host_pid)
        return compare(self, f"{version} {mode}", methods)

    def test_every_map_is_that_of_clrmd(self):
        for version in VERSIONS:
            with self.subTest(version):
                counts = sum((self.compare(version, mode) for mode in MODES), collections.Counter())
                self.assertGreaterEqual(counts["pairs"], LEAST_PAIRS)


if __name__ == "__main__":
    check_program.main(r2r_names_test.R2R_CHECK)
