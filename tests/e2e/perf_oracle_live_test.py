#!/usr/bin/env python3
"""perf as an independent oracle: both record the same target at the same time, and the top leaf methods get the same shares."""
import collections
import glob
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

import folded
import harness
import perf_data
import runtimes

FREQUENCY = 999


def _skip_brackets(text, at, step):
    """From a closing (step -1) or opening bracket to just past its partner."""
    depth = 0
    while 0 <= at < len(text):
        if text[at] in "<[(":
            depth += step
        elif text[at] in ">])":
            depth -= step
        at += step
        if depth == 0:
            break
    return at


def method_key(text):
    """`Type::Method` of a runtime's method text, without module, return type, arguments, generic arguments and tier.

    `instance void [M] Ns.T`1[System.__Canon]::Run<int32>(class X)[OptimizedTier1]` -> `Ns.T`1::Run`. None: not a method text."""
    split = text.find("::")
    if split < 0:
        return None
    begin = split
    while begin > 0 and text[begin - 1] != " ":
        begin = _skip_brackets(text, begin - 1, -1) + 1 if text[begin - 1] in "])" else begin - 1
    owner = text[begin:split]
    method = text[split + 2:]
    end = re.search(r"[(\[]", method)
    method = method[:end.start()] if end else method
    if not method.startswith("<"):
        method = method.split("<")[0]
    while "[" in owner:
        at = owner.index("[")
        owner = owner[:at] + owner[_skip_brackets(owner, at, 1):]
    return f"{owner}::{method}"


class MethodKeyTest(unittest.TestCase):
    def test_method_key(self):
        for text, key in (
                ("instance void [System.Private.CoreLib] System.Collections.Generic.Dictionary`2[System.__Canon,System.__Canon]::"
                 ".ctor(int32,class X)[PreJIT]", "System.Collections.Generic.Dictionary`2::.ctor"),
                ("void [w] Workload.Loops::Mix(int32)[OptimizedTier1]", "Workload.Loops::Mix"),
                ("int64 [w] Workload.Loops+<>c::<Linq>b__9_0(class A,valuetype System.Nullable`1<int32>)[Optimized]", "Workload.Loops+<>c::<Linq>b__9_0"),
                ("class System.Collections.Generic.List`1<class X, int32> [w] Ns.A`1[T, U]::Run<class Y>(int32)[X]", "Ns.A`1::Run"),
                ("object [w] dynamicClass::InvokeStub_X(object,object)[Optimized]", "dynamicClass::InvokeStub_X"),
                ("[w] Ns.A::B", "Ns.A::B"), ("libcoreclr.so!0x1234", None)):
            with self.subTest(text=text):
                self.assertEqual(method_key(text), key)


class PerfOracleTest(harness.LiveTest):
    NEEDS = ("dotnet", "perf")

    def perf_leaves(self, data, folder, pid, begin, end):
        """Leaf method -> samples, and the number of samples, of the process between two monotonic times in seconds."""
        jit = os.path.join(folder, "jit.data")
        perf_data.hide_jitdumps_of_others(data, pid)
        done = subprocess.run(["perf", "inject", "--jit", "-i", data, "-o", jit], capture_output=True, text=True, timeout=180)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = subprocess.run(["perf", "script", "-i", jit, "-F", "pid,time,ip,sym,dso"], capture_output=True, text=True,
                              timeout=180, errors="replace").stdout
        for path in glob.glob(f"/tmp/jitted-{pid}-*.so") + glob.glob(os.path.expanduser(f"~/.debug/jit/*/jitted-{pid}-*.so")):
            os.unlink(path)
        leaves, total = collections.Counter(), 0
        for block in text.split("\n\n"):
            lines = [line for line in block.split("\n") if line.strip()]
            head = re.fullmatch(r"\s*(\d+)\s+(\d+\.\d+):\s*", lines[0]) if len(lines) >= 2 else None
            if not head or int(head.group(1)) != pid or not begin <= float(head.group(2)) <= end:
                continue
            total += 1
            match = re.match(r"\s*[0-9a-f]+ (.*) \(([^()]*)\)\s*$", lines[1])
            key = method_key(match.group(1)) if match and "/jitted-" in match.group(2) else None
            if key:
                leaves[key] += 1
        return leaves, total

    def compare(self, version, mode):
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder, \
             harness.workload(version, mode, "--seconds", 40, perf_map=1) as target:
            time.sleep(5)  # past tiering: inlining moves time between methods, and the two windows differ by some milliseconds
            data = os.path.join(folder, "perf.data")
            # All CPUs are recorded: clocks of single threads (-p) are set anew at each switch and find it overdue. In a program whose threads
            # wake each other 4 % more would be in finish_task_switch, and thread shares would differ by 1 % from the scheduler's.
            perf = subprocess.Popen(["perf", "record", "-q", "-k", "mono", "-F", str(FREQUENCY), "-e", "cpu-clock", "-g", "-a", "-o", data],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.5)
            agent = harness.Agent(["--pid", str(target.host_pid), "--duration", "8s", "--frequency", str(FREQUENCY), "--names", "raw"])
            agent.wait_until_sampling()
            begin = time.monotonic()
            result = agent.finish(180)
            # Not until it has ended: what it does then takes a while, and the program does other things in it.
            end = begin + result.stats["duration_seconds"]
            perf.send_signal(signal.SIGINT)
            perf.wait(180)
            theirs, their_total = self.perf_leaves(data, folder, target.pid, begin, end)
        profile = self.check_result(result, minimum_samples=1000)
        ours = collections.Counter()
        for frame, count in profile.leaves().items():
            # A backtick would cut names in flamegraph.pl; the folded format writes it as ~.
            key = method_key(folded.bare(frame).replace("~", "`")) if frame.endswith("_[j]") else None
            if key:
                ours[key] += count
        self.assertGreater(their_total, 1000)
        top = [name for name, _ in (theirs + ours).most_common(20)]
        self.assertEqual(len(top), 20, top)
        rows, wrong = [], []
        for name in top:
            a, b = theirs[name] / their_total, ours[name] / profile.total
            both = (theirs[name] + ours[name]) / (their_total + profile.total)
            noise = 5 * (harness.sigma(both, their_total) ** 2 + harness.sigma(both, profile.total) ** 2) ** 0.5 + 0.003
            self.margin(abs(a - b), noise)
            rows.append(f"{name}: perf {a:.4f} ours {b:.4f} allowed {noise:.4f}")
            if abs(a - b) > noise:
                wrong.append(rows[-1])
        self.assertEqual(wrong, [], "all:\n" + "\n".join(rows) + f"\nperf {their_total} samples, ours {profile.total}")

    def test_top_leaf_methods_agree(self):
        for version in runtimes.newest():
            with self.subTest(version=version):
                self.need_runtime(version)
                self.compare(version, "mix")


if __name__ == "__main__":
    harness.main()
