#!/usr/bin/env python3
"""Our stacks of a stopped process against unwinders that are not ours: ClrMD for managed frames, eu-stack or gdb for native ones (unwinders.py).

And what tests/apps/shapes says of its own stacks against ClrMD, so that the truth of stacks_live_test.py does not rest on its word alone.

  UNWINDERS_CASES=REGEX    only cases whose name (`8.0.30 shapes osr`, `10.0.14 workload json`) matches
  UNWINDERS_STACKS=10000   so many stacks of all cases together; else 6 stops of each
"""
import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import harness
import runtimes
import stack_truth
import stacks_live_test
import unwinders

VERSIONS = (*runtimes.PACKED_VERSIONS, runtimes.INSTALLED)
STOPS = 6
STACKS = int(os.environ.get("UNWINDERS_STACKS", "0"))
RUN_SECONDS = 0.02 if STACKS else 0.15
THREADS = 12 if STACKS else 2
WORKLOADS = ("json", "regex", "linq", "async", "gc", "zoo", "expr")
# In the middle of a throw ClrMD shows the runtime's own order of frames, a handler and its method as two; a reader of profiles wants one.
HANDLERS = ("exceptions", "retries")
# The share of the frames that could be compared which must be equal. ClrMD itself is known to be wrong at moments: inside stubs, and while an
# exception is on its way, it skips frames. gdb is wrong in the first instructions of a PLT entry.
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
    return harness.workload(case.version, case.mode, "--seconds", 3000, "--threads", THREADS)


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=120)
    if done.returncode:
        raise AssertionError(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def ours(pid):
    return unwinders.parse_ours(run(harness.AGENT, "stacks", "--json", "--pid", str(pid)))


def clrmd(pid):
    return unwinders.parse_clrmd(run(runtimes.dotnet(), runtimes.app("oracle_names"), str(pid), "stacks"))


class Resident:
    """An unwinder that is started once: each line that it is sent it answers with the stacks of that moment and an empty line."""

    def __init__(self, arguments, parse):
        self.parse, self.arguments = parse, arguments
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
                                        errors="replace", env={k: v for k, v in os.environ.items() if k != "DEBUGINFOD_URLS"})

    def stacks(self):
        self.process.stdin.write("stacks\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line == "\n":
                return self.parse("".join(lines))
            lines.append(line)
        raise AssertionError(f"{' '.join(self.arguments)} ended with {self.process.wait()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(60)


def resident_clrmd(pid):
    return Resident([runtimes.dotnet(), runtimes.app("oracle_names"), str(pid), "stacks", "each"], unwinders.parse_clrmd)


class EuStack:
    """eu-stack reads little when it starts."""

    def __init__(self, pid):
        self.pid = pid

    def stacks(self):
        return unwinders.parse_eu_stack(run("env", "-u", "DEBUGINFOD_URLS", "eu-stack", "-n", "2048", "-p", str(self.pid)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@contextlib.contextmanager
def native(pid):
    """eu-stack or gdb, without symbols from servers."""
    if shutil.which("eu-stack"):
        yield EuStack(pid)
        return
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(unwinders.GDB_SCRIPT)
        script.flush()
        with Resident(["env", f"UNWINDERS_PID={pid}", "gdb", "-nx", "--batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off",
                       "-x", script.name], unwinders.parse_gdb) as gdb:
            yield gdb


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

    def compare(self, case, wanted):
        """Findings, how many stacks they are of, and how many frames and stacks were compared: of so many stops, or of so many stacks where
        those are asked for."""
        findings, differing, compared, stacks = [], 0, 0, 0
        with start(case) as target, native(target.host_pid) as other, resident_clrmd(target.host_pid) as debugger:
            for number in self.stops(target, sys.maxsize if wanted else STOPS):
                pid = target.host_pid
                mine, code = ours(pid), unwinders.NativeCode(maps(pid))
                results = [unwinders.compare_native(mine, other.stacks(), code)]
                if case.mode not in HANDLERS:
                    results.append(unwinders.compare_managed(mine, debugger.stacks()))
                for found, count in results:
                    findings += found
                    compared += count
                # The native frames and the managed ones of a stack may both be wrong.
                differing += len({finding.tid for found, _ in results for finding in found})
                stacks += len(mine)
                if not wanted or number % 16 == 0:
                    self.assertTrue(unwinders.same_leaves(mine, ours(pid)), f"{case}: the process did not stand still")
                if wanted and stacks >= wanted:
                    break
        return findings, differing, compared, stacks

    def test_stacks_agree(self):
        total = faults = stacks = 0
        chosen = cases(("shapes", "workload"))
        for case in chosen:
            with self.subTest(str(case)):
                self.need_runtime(case.version)
                findings, differing, compared, seen = self.compare(case, STACKS // len(chosen))
                print(f"{case}: {compared} frames of {seen} stacks compared, {differing} stacks differ", flush=True)
                total += compared
                faults += differing
                stacks += seen
                # A reader must see which of the two is right: one is too many to be passed over where the others are equal.
                text = "\n".join(f"  {f.tid}: {f.what}\n    ours   {f.ours}\n    theirs {f.theirs}" for f in findings[:5])
                print(text, end="\n" if text else "", flush=True)
                self.assertLessEqual(differing, 1 + seen // 1000, f"{case}:\n{text}")
                self.assertGreater(compared, 10 * STOPS)
        print(f"{stacks} stacks, {total} frames, {faults} stacks differ", flush=True)
        self.assertLessEqual(faults, (1 - SHARE) * (stacks if STACKS else total) + 1, f"{faults} stacks differ; {total} frames are equal")


def short_name(name):
    """ClrMD's name of a method of tests/apps/shapes as the truth has it, without generic arguments."""
    name = re.sub(r"\+<(\w+)>d__\d+\.MoveNext$", r".\1", name)
    name = re.sub(r"^(dynamicClass|DynamicClass)\.|^(?=Shapes(Jumps|Helped)$)", "[dynamic] ", name)
    return name if name.startswith("[dynamic]") else unwinders.bare_name(name)


class TruthTest(StoppedTest):
    """ClrMD must see what the program says, too. It does not show native frames."""

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
