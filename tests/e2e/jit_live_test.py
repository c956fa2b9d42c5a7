#!/usr/bin/env python3
"""`clrsampler jit` against the runtime's own word: how many methods were compiled, which, and to which tier."""
import collections
import os
import re
import shutil
import signal
import statistics
import tempfile
import time

import deployments
import harness
import runtimes
from watcher import Watcher, truth_of

VERSIONS = runtimes.selected()
SINGLE_FILE = "10.0.14"
FREQUENCY = "499"
# A storm is a thousand compilations a second for three seconds. One thread makes 3,000 on a CPU of an EPYC, and fewer on a slower one.
THREADS = 2
FIELDS = {"time_ns": int, "pid": int, "method": str, "tier": str, "duration_ns": int, "bytes": int, "thread": int, "own_ns": int, "callers": list}
MAP_LINE = re.compile(r"^(?:0x)?([0-9a-f]+) (?:0x)?([0-9a-f]+) (.*)\[(QuickJitted|InstrumentedTier|InstrumentedTierOptimized|OptimizedTier1|OptimizedTier1OSR|Optimized|MinOptJitted)\]$")


def method_of(text):
    """Type and method of a raw name, without return type, arguments and generic arguments: `Workload.CompileMode+Cell::Add`."""
    owner, _, method = text.split("(")[0].rpartition("::")
    owner = re.sub(r"`\d+", "", owner)
    while (without := re.sub(r"(?<=[\w>])<[^<>]*>|\[[^\[\]]*\]", "", owner)) != owner:
        owner = without
    return owner.split()[-1].replace("/", "+"), re.sub(r"\[.*\]$", "", method).strip()


class JitTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def setUp(self):
        super().setUp()
        self.maps = tempfile.mkdtemp(prefix="maps-")
        self.addCleanup(shutil.rmtree, self.maps, ignore_errors=True)

    def compile(self, start, watch):
        """Runs the mode `compile` with a perf map that only this test can find; (truth, lines of the map, what `watch(pid)` gives at its end)."""
        kept = os.path.join(self.maps, "kept")
        hidden = os.path.join(self.maps, "hidden")
        os.makedirs(kept)
        env = {"DOTNET_PerfMapEnabled": "3", "DOTNET_PerfMapJitDumpPath": kept, "DOTNET_PerfMapShowOptimizationTiers": "1"}
        with start(env) as target:
            os.rename(kept, hidden)
            with watch(target.host_pid) as watcher:
                target.signal(signal.SIGHUP)
                truth = truth_of(target)
                events = watcher.finish()
            target.end()  # .NET 11 writes the last lines of its map then
            with open(os.path.join(hidden, f"perf-{target.pid}.map"), encoding="utf-8", errors="replace") as f:
                lines = [line for line in map(MAP_LINE.match, f) if line]
        shutil.rmtree(hidden)
        return truth, lines, events

    def test_agrees_with_the_runtime(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                self.need_runtime(version)
                self.check(version)

    def check(self, version, start=None):
        start = start or (lambda env: harness.workload(version, "compile", "--seconds", 120, env=env))
        truth, lines, events = self.compile(start, lambda pid: Watcher("jit", pid, "--names", "raw"))
        for event in events:
            for field, kind in FIELDS.items():
                self.assertIsInstance(event[field], kind, event)
            self.assertLessEqual(event["own_ns"], event["duration_ns"], event)
        compiled = [event for event in events if "refused" not in event]
        during = [event for event in compiled if truth["begin_ns"] <= event["time_ns"] <= truth["end_ns"]]
        self.assertEqual(len(during), truth["compiled"], "JitInfo.GetCompiledMethodCount")
        self.assertEqual(len(events) - len(compiled), truth["thrown"], "methods that can't be compiled")

        # A freed method's place is used again, so there may be several lines for an address: theirs are in order.
        places = collections.defaultdict(list)
        for line in lines:
            places[int(line[1], 16)].append(line)
        reasons, named = collections.Counter(), 0
        by_address = collections.defaultdict(list)
        for event in compiled:
            by_address[event["address"]].append(event)
        for address, there in by_address.items():
            said = places[address][-len(there):]
            self.assertEqual(len(said), len(there), f"{there}: not in the map")
            for event, line in zip(there, said):
                self.assertEqual((event["bytes"], event["tier"]), (int(line[2], 16), line[4]), f"{event}: {line[0]}")
                if event["name_source"] == "none":
                    reasons[event["method"]] += 1
                    continue
                named += 1
                self.assertEqual(method_of(event["method"]), method_of(line[3]), f"{event}: {line[0]}")
        self.assertGreaterEqual(named, 0.999 * len(compiled), reasons)
        tiers = collections.Counter(event["tier"] for event in compiled)
        self.assertTrue({"QuickJitted", "OptimizedTier1", "OptimizedTier1OSR", "Optimized"} <= set(tiers), tiers)
        foreground = [event for event in compiled if not event["thread_name"].startswith(".NET Tiered")]
        with_caller = [event for event in foreground if not event["callers"][0].startswith("[")]
        self.assertGreaterEqual(len(with_caller), 0.98 * len(foreground), "the method that it was compiled for")
        stubs = [event for event in compiled if "Emitted" in event["method"]]
        self.assertEqual(len(stubs), 500)
        self.assertTrue(all("Loops::JitMethods" in " ".join(event["callers"]) for event in stubs))
        print(f"    {version}: {len(compiled)} compilations, {named} named, {dict(tiers)}; {len(with_caller)} of {len(foreground)} with their caller", flush=True)

    @harness.in_matrix
    def test_single_file(self):
        """Runtime and compiler are in one image."""
        argv = deployments.publish("single-file", SINGLE_FILE)
        self.check(SINGLE_FILE, start=lambda env: harness.Target([*argv, "compile", "--seconds", "120"], env=env))


class ViewTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def test_view_has_what_the_command_has(self):
        """Two at the same time: the same time is spent on the same methods."""
        self.need_runtime("10.0.14")
        with harness.workload("10.0.14", "compile", "--seconds", 120) as target, Watcher("jit", target.host_pid) as watcher:
            agent = harness.Agent(["--pid", str(target.host_pid), "--view", "jit"])
            agent.wait_until_sampling()
            target.signal(signal.SIGHUP)
            truth = truth_of(target)
            agent.interrupt()
            result = agent.finish(180)
            events = watcher.finish()
        weights = collections.Counter()
        for stack, weight in result.profile.stacks:
            weights[stack[-1]] += weight
        # The watcher begins before the recording and ends after it; between is what the program says it had compiled.
        expected, all_names = collections.Counter(), set()
        for event in events:
            name = "[jit]" if event["name_source"] == "none" else f"[jit {event['method']} {event['tier']}]"
            all_names.add(name)
            if truth["begin_ns"] <= event["time_ns"] <= truth["end_ns"]:
                expected[name] += event["own_ns"] // 1000
        self.assertGreater(len(expected), 100)
        self.assertEqual(set(expected) - set(weights), set())
        self.assertEqual(set(weights) - all_names, set())
        # Each of the two measures what the other's probes take, too: 4 us of a compilation of 30, and more on a slow machine. A thread that
        # loses its CPU between the two probes of one place spoils one method, which happens to a few of hundreds.
        close = sum(abs(weights[name] - spent) <= 0.3 * max(weights[name], spent) + 25 for name, spent in expected.items())
        print(f"    {close} of {len(expected)} methods took the same time", flush=True)
        self.assertGreater(close, 0.85 * len(expected), "the two differ")


class StormTest(harness.LiveTest):
    """Where a program compiles without end, its stack says when a compilation began, and one of the two probes is detached."""
    NEEDS = ("dotnet",)

    def test_stack_says_what_the_probe_said(self):
        for version in runtimes.newest():
            with self.subTest(version=version):
                self.need_runtime(version)
                with harness.workload(version, "expr", "--seconds", 300, "--threads", THREADS) as target:
                    target.outrank()
                    time.sleep(2)
                    # `clrsampler jit` has both probes of its own all the time.
                    agent = harness.Agent(["--pid", str(target.host_pid), "--frequency", FREQUENCY, "--duration", "12s", "--hook-budget", "0"])
                    agent.wait_until_sampling()
                    time.sleep(6)
                    with Watcher("jit", target.host_pid) as watcher:
                        time.sleep(3)
                        events = watcher.finish()
                    result = agent.finish(180)
                self.check_result(result)
                counts = result.stats["jit"]
                print(f"    {version}: {counts}", flush=True)
                self.assertEqual(counts["entry_probe_detachments"], 1, "it does not compile a thousand methods a second")
                self.assertGreater(counts["began_by_stack"], counts["compilations"] // 3)
                # Those that were under way at the beginning, and when the first probe was taken out.
                self.assertLessEqual(counts["cut"], 10)
                stats = [statistics.median(e["duration_ns"] for e in events), counts["total_us"] * 1e3 / counts["compilations"],
                         statistics.fmean(e["own_ns"] for e in events)]
                print(f"    {version}: {len(events)} by both probes, median {stats[0]:.0f} ns, mean {stats[2]:.0f}; by the recording, mean {stats[1]:.0f}", flush=True)
                self.assertGreater(len(events), 1000)
                # Some ten thousand each, at times that overlap in part; a few that waited for a CPU make up much of the means.
                self.assertLess(max(stats[1] / stats[2], stats[2] / stats[1]), 1.6)
                roles = [frames for frames, _ in result.profile.stacks if any(re.match(r"\[jit \S", f) for f in frames)]
                self.assertGreater(len(roles), 20, "samples in the compiler say what it compiled")

    @harness.in_matrix
    def test_probe_returns_after_the_storm(self):
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        with harness.workload(version, "expr", "--seconds", 300, "--threads", THREADS) as target:
            target.outrank()
            time.sleep(2)
            agent = harness.Agent(["--pid", str(target.host_pid), "--frequency", "49", "--hook-budget", "0"])
            agent.wait_until_sampling()
            # How many methods a second it compiles is a matter of the CPU time that it gets; for how long it does not, one of the clock.
            target.use_cpu(6 * THREADS)
            target.signal(signal.SIGSTOP)
            time.sleep(5)
            target.signal(signal.SIGCONT)
            target.use_cpu(6 * THREADS)
            agent.interrupt()
            result = agent.finish(180)
        counts = result.stats["jit"]
        print(f"    {counts}", flush=True)
        self.assertEqual(counts["entry_probe_detachments"], 2)
        self.assertLessEqual(counts["cut"], 10)


if __name__ == "__main__":
    harness.main()
