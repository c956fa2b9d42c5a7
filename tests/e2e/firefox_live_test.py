#!/usr/bin/env python3
"""The Firefox Profiler's own reader loads our file without a complaint, and finds the same threads, functions and markers as are in our JSON."""
import collections
import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time

import harness
import runtimes

VERSION = "0.10.0"  # of the profiler's command line, which has the viewer's reader with all its upgrades inside


class Viewer:
    """A session of the profiler's command line, which keeps its state below `folder`."""

    def __init__(self, package, folder):
        self.program = os.path.join(package, "dist", "profiler-cli.js")
        self.env = {**os.environ, "HOME": folder, "XDG_RUNTIME_DIR": folder, "PROFILER_CLI_SESSION_DIR": folder}

    def run(self, *arguments):
        done = subprocess.run(["node", self.program, *arguments], env=self.env, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise AssertionError(f"profiler-cli {' '.join(arguments)}: {done.stderr or done.stdout}")
        return done

    def load(self, profile):
        """Its daemon has half a second to start, which a busy machine does not always give: one that was late is ended, and another one started."""
        deadline = time.monotonic() + 120
        while True:
            try:
                return self.run("load", profile)
            except AssertionError as e:
                late = re.search(r"did not become ready within.*still be running as pid (\d+)", str(e), re.DOTALL)
                if not late or time.monotonic() > deadline:
                    raise
                self.end(int(late.group(1)))

    @staticmethod
    def end(pid):
        """Returns when it writes no more."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        while os.path.exists(f"/proc/{pid}/exe"):  # one that has ended has none
            time.sleep(0.01)

    def ask(self, *arguments):
        return json.loads(self.run(*arguments, "--json").stdout)


class Loaded(harness.LiveTest):
    """One recording as our JSON and in the viewer."""

    NEEDS = ("dotnet", "node", "npm")
    MODE, OPTIONS = "gc", ("--frequency", "299")

    @classmethod
    def check_needs(cls):
        super().check_needs()
        cls.package = runtimes.npm_package("@firefox-devtools/profiler-cli", VERSION, "firefox-profiler")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory(prefix="clrsampler-test-")
        cls.addClassCleanup(cls.folder.cleanup)
        profile, own = (os.path.join(cls.folder.name, name) for name in ("x.profile.json.gz", "x.json"))
        with harness.workload(runtimes.INSTALLED, cls.MODE, "--seconds", 30) as target:
            cls.result = harness.record("--pid", str(target.host_pid), "--duration", "4s", *cls.OPTIONS, "-o", profile, "-o", own)
        with open(own, encoding="utf-8") as file:
            cls.model = json.load(file)
        cls.viewer = Viewer(cls.package, cls.folder.name)
        cls.loaded = cls.viewer.load(profile)
        cls.addClassCleanup(cls.viewer.run, "stop")

    def markers(self):
        found = collections.Counter()
        for thread in self.viewer.ask("thread", "list")["threads"]:
            if thread["markerCount"] == 0:
                continue
            for group in self.viewer.ask("thread", "markers", "--thread", thread["threadHandle"])["byType"]:
                found[group["markerName"]] += group["count"]
        return found

    def markers_of_samples(self):
        """Without the runtime's events."""
        return {name: count for name, count in self.markers().items() if name not in self.model.get("event_kinds", ())}

    def timed_leaves(self):
        """The names of the innermost frames of samples that have a time."""
        strings, frames, nodes, samples = (self.model[key] for key in ("strings", "frames", "nodes", "samples"))
        times = samples.get("time_ns") or [None] * len(samples["stack"])
        return [strings[frames["name"][nodes["frame"][node]]] for node, time in zip(samples["stack"], times) if time is not None]


class FirefoxTest(Loaded):
    def functions_of_threads(self):
        """By tid: samples that end in each function, and samples that it is anywhere in."""
        strings, frames, nodes, threads = (self.model[key] for key in ("strings", "frames", "nodes", "threads"))
        own, total = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
        samples = self.model["samples"]
        for thread, node in zip(samples["thread"], samples["stack"]):
            tid = threads["tid"][thread]
            names = []
            while node:
                names.append(strings[frames["name"][nodes["frame"][node]]])
                node = nodes["parent"][node]
            own[tid][names[0]] += 1
            for name in set(names):
                total[tid][name] += 1
        return own, total

    def test_it_loads_without_a_complaint(self):
        self.assertNotRegex((self.loaded.stdout + self.loaded.stderr).lower(), "warn|error|unknown|fail")
        meta = self.viewer.ask("profile", "meta")
        self.assertEqual(meta["importedFrom"], self.model["meta"]["creator"])
        self.assertAlmostEqual(meta["interval"], self.model["meta"]["period_ns"] / 1e6, 5)

    def test_functions_of_each_thread_have_as_many_samples(self):
        own, total = self.functions_of_threads()
        listed = [thread for thread in self.viewer.ask("thread", "list")["threads"] if thread["tid"] in own]
        self.assertEqual({thread["tid"] for thread in listed}, set(own))
        for thread in listed:
            found = self.viewer.ask("thread", "functions", "--thread", thread["threadHandle"], "--limit", "0", "--include-idle")
            theirs_own, theirs_total = collections.Counter(), collections.Counter()
            for function in found["functions"]:
                theirs_own[function["name"]] += function["selfSamples"]
                theirs_total[function["name"]] = max(theirs_total[function["name"]], function["totalSamples"])
            self.assertEqual(+theirs_own, own[thread["tid"]])
            # Functions of one name and different images are one in our count alone.
            for name, count in theirs_total.items():
                self.assertLessEqual(count, total[thread["tid"]][name], name)
        self.assertEqual(sum(sum(counts.values()) for counts in own.values()), self.result.stats["samples"]["written"])

    def test_pauses_are_markers_of_the_process(self):
        kinds = [self.model["event_kinds"][kind] for kind in self.model["events"]["kind"]]
        self.assertGreater(kinds.count("pause"), 3)
        self.assertEqual(kinds.count("pause"), self.result.stats["pauses"]["pauses"])
        self.assertEqual(self.markers(), collections.Counter(kinds))


class FirefoxWaitsTest(Loaded):
    MODE, OPTIONS = "mix", ("--event", "off-cpu")

    def test_each_wait_is_a_marker_of_its_kind(self):
        waits = collections.Counter(name.strip("[]") for name in self.timed_leaves())
        self.assertGreater(waits.total(), 10)
        self.assertEqual(self.markers_of_samples(), waits)


class FirefoxAllocationsTest(Loaded):
    MODE, OPTIONS = "mix", ("--event", "alloc")

    def test_each_allocation_is_a_marker(self):
        allocations = len(self.timed_leaves())
        self.assertGreater(allocations, 10)
        self.assertEqual(self.markers_of_samples(), {"allocation": allocations})


if __name__ == "__main__":
    harness.main()
