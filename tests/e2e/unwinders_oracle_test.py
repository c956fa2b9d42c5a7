#!/usr/bin/env python3
"""Our stacks of a stopped process against unwinders that are not ours: ClrMD for managed frames, eu-stack or gdb for native ones (unwinders.py).

And what tests/apps/shapes says of its own stacks against ClrMD, so that the truth of stacks_live_test.py does not rest on its word alone.

  UNWINDERS_CASES=REGEX   only cases whose name (`8.0.30 shapes osr`, `10.0.14 workload json`) matches
"""
import collections
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import harness
import runtimes
import stack_truth
import stacks_live_test
import unwinders

VERSIONS = (*runtimes.PACKED_VERSIONS, runtimes.INSTALLED)
STOPS = 6
RUN_SECONDS = 0.15
WORKLOADS = ("json", "regex", "linq", "async", "gc", "zoo", "expr")
# In the middle of a throw ClrMD shows the runtime's own order of frames, a handler and its method as two; a reader of profiles wants one.
HANDLERS = ("exceptions",)
# Of all frames that could be compared so many may differ: moments for which ClrMD itself is known to be wrong (inside stubs and while an exception
# is on its way it skips frames), and gdb (the first instructions of a PLT entry).
SHARE = 0.999


class Case(collections.namedtuple("Case", "version program mode")):
    def __str__(self):
        return " ".join(self)


def cases(programs):
    pattern = re.compile(os.environ.get("UNWINDERS_CASES", ""))
    found = [Case(version, "shapes", mode) for version in VERSIONS for mode in stacks_live_test.MODES if "shapes" in programs]
    found += [Case(version, "workload", mode) for version in VERSIONS for mode in WORKLOADS if "workload" in programs]
    return [case for case in found if pattern.search(str(case))]


def start(case):
    if case.program == "shapes":
        return stacks_live_test.start(stacks_live_test.Case(case.version, case.mode, "default"))
    return harness.workload(case.version, case.mode, "--seconds", 300, "--threads", 2)


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=120)
    if done.returncode:
        raise AssertionError(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def ours(pid):
    return unwinders.parse_ours(run(harness.AGENT, "stacks", "--json", "--pid", str(pid)))


def clrmd(pid):
    return unwinders.parse_clrmd(run(runtimes.dotnet(), runtimes.app("oracle_names"), str(pid), "stacks"))


def native(pid):
    """By eu-stack or gdb, without symbols from servers."""
    if shutil.which("eu-stack"):
        return unwinders.parse_eu_stack(run("env", "-u", "DEBUGINFOD_URLS", "eu-stack", "-n", "2048", "-p", str(pid)))
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(unwinders.GDB_SCRIPT)
        script.flush()
        return unwinders.parse_gdb(run("gdb", "-nx", "--batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off", "-p", str(pid),
                                       "-x", script.name))


def maps(pid):
    with open(f"/proc/{pid}/maps") as f:
        return f.read()


class StoppedTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    @classmethod
    def check_needs(cls):
        super().check_needs()
        runtimes.app("oracle_names")
        if not os.path.exists(stacks_live_test.NATIVE):
            raise harness.Missing(f"no library at {stacks_live_test.NATIVE}; build it, or name it in SHAPES_NATIVE")

    def stops(self, target, count=STOPS):
        """Stops the target at moments that have nothing to do with what it does."""
        for number in range(count):
            time.sleep(RUN_SECONDS + 0.00317 * number)
            target.freeze()
            yield number
            target.signal(signal.SIGCONT)


class UnwindersTest(StoppedTest):
    @classmethod
    def check_needs(cls):
        super().check_needs()
        if not shutil.which("eu-stack") and not shutil.which("gdb"):
            raise harness.Missing("neither eu-stack nor gdb on PATH")

    def compare(self, case):
        findings, compared = [], 0
        with start(case) as target:
            for _ in self.stops(target):
                pid = target.host_pid
                mine, code = ours(pid), unwinders.NativeCode(maps(pid))
                results = [unwinders.compare_native(mine, native(pid), code)]
                if case.mode not in HANDLERS:
                    results.append(unwinders.compare_managed(mine, clrmd(pid)))
                for found, count in results:
                    findings += found
                    compared += count
                self.assertTrue(unwinders.same_leaves(mine, ours(pid)), f"{case}: the process did not stand still")
        return findings, compared

    def test_stacks_agree(self):
        total = faults = 0
        for case in cases(("shapes", "workload")):
            with self.subTest(str(case)):
                self.need_runtime(case.version)
                findings, compared = self.compare(case)
                print(f"{case}: {compared} frames equal, {len(findings)} stacks differ", flush=True)
                total += compared
                faults += len(findings)
                # Which of the two is right, a reader must see: one is too many to be passed over where the others are equal.
                text = "\n".join(f"  {f.tid}: {f.what}\n    ours   {f.ours}\n    theirs {f.theirs}" for f in findings[:5])
                print(text, end="\n" if text else "", flush=True)
                self.assertLessEqual(len(findings), 1, f"{case}:\n{text}")
                self.assertGreater(compared, 10 * STOPS)
        self.assertLessEqual(faults, (1 - SHARE) * total + 1, f"{faults} stacks differ; {total} frames are equal")


def short_name(name):
    """ClrMD's name of a method of tests/apps/shapes as the truth has it, without generic arguments."""
    name = re.sub(r"\+<(\w+)>d__\d+\.MoveNext$", r".\1", name)
    name = re.sub(r"^(dynamicClass|DynamicClass)\.|^(?=Shapes(Jumps|Helped)$)", "[dynamic] ", name)
    return name if name.startswith("[dynamic]") else unwinders.bare_name(name)


class TruthTest(StoppedTest):
    """What ClrMD sees must be what the program says, too. It does not show native frames."""

    # From native code that was called without a transition ClrMD finds no way.
    DIFFERENT = (*HANDLERS, "suppressed")

    def test_clrmd_sees_the_chains(self):
        for case in cases(("shapes",)):
            if case.mode in self.DIFFERENT:
                continue
            with self.subTest(str(case)):
                self.need_runtime(case.version)
                with start(case) as target:
                    truth = stacks_live_test.truth_of(target)
                    chains = [[n if n.startswith("[dynamic]") else unwinders.bare_name(n) for n in chain.names if not n.startswith("shapes_")] for chain in truth.chains]
                    seen, wrong = 0, []
                    for _ in self.stops(target, 3):
                        for frames in clrmd(target.host_pid).values():
                            names = [short_name(f.name) for f in reversed(frames) if f.kind == "managed"]
                            own = [n for n in names if stack_truth.is_own(n)]
                            if own and own != ["Shapes.Program.Main"]:
                                seen += 1
                                if not any(own == chain[:len(own)] for chain in chains):
                                    wrong.append(own)
                self.assertEqual(wrong, [])
                self.assertGreaterEqual(seen, 1)


if __name__ == "__main__":
    harness.main()
