#!/usr/bin/env python3
"""A reader made of Perfetto's own schema finds in our traces every sample, pause, compilation and wait that our JSON has, and nothing else."""
import collections
import itertools
import json
import os
import subprocess
import tempfile

import folded
import harness
import runtimes

READER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "perfetto_reader.py")
MONOTONIC = 3
KINDS = {"native": "KIND_NATIVE", "kernel": "KIND_KERNEL", "jit": "KIND_JIT", "r2r": "precompiled .NET", "aot": "precompiled .NET"}
LATE_NS = 100_000_000  # by which the last sample may come after the recording's end


class Trace:
    def __init__(self, path):
        done = subprocess.run([harness.python_with("google.protobuf"), READER, path], capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        self.json = json.loads(done.stdout)

    def names(self, stack):
        return tuple(frame["name"] for frame in self.json["stacks"][stack])


class Model:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.json = json.load(file)
        self.strings, self.frames, self.nodes = self.json["strings"], self.json["frames"], self.json["nodes"]

    def indexes(self, node):
        """Frames, the outermost first."""
        frames = []
        while node:
            frames.append(self.nodes["frame"][node])
            node = self.nodes["parent"][node]
        return frames[::-1]

    def names(self, node):
        return tuple(self.strings[self.frames["name"][frame]] for frame in self.indexes(node)) or ("[no stack]",)

    def samples(self):
        """Each sample as time, pid, tid, names, weight."""
        samples, threads = self.json["samples"], self.json["threads"]
        nothing = itertools.repeat(None)
        for thread, node, time, weight in zip(samples["thread"], samples["stack"], samples.get("time_ns", nothing), samples.get("weight", nothing)):
            yield time, threads["pid"][thread], threads["tid"][thread], self.names(node), weight or 1

    def events(self, kind):
        """Each event as time, duration, name, detail."""
        events = self.json.get("events", {"kind": ()})
        return sorted((events["time_ns"][i], events["duration_ns"][i], self.strings[events["name"][i]], self.strings[events["detail"][i]])
                      for i, its in enumerate(events["kind"]) if self.json["event_kinds"][its] == kind)


class PerfettoTest(harness.LiveTest):
    """CPU time of a program that collects."""

    NEEDS = ("dotnet",)
    MODE, VIEW = "gc", ("--event", "cpu")

    @classmethod
    def check_needs(cls):
        super().check_needs()
        if harness.python_with("google.protobuf") is None:
            raise harness.Missing("no Python with protobuf (python3-protobuf)")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="clrsampler-test-")
        cls.addClassCleanup(folder.cleanup)
        paths = [os.path.join(folder.name, name) for name in ("x.perfetto-trace", "x.json", "x.folded")]
        outputs = [argument for path in paths for argument in ("-o", path)]
        with harness.workload(runtimes.INSTALLED, cls.MODE, "--seconds", 30) as target:
            cls.result = harness.record("--pid", str(target.host_pid), "--duration", "4s", *cls.VIEW, *outputs)
            cls.pid = target.host_pid
        cls.trace, cls.model = Trace(paths[0]), Model(paths[1])
        with open(paths[2], "rb") as file:
            cls.folded = folded.parse(file.read())
        cls.start_ns = cls.model.json["meta"]["start_monotonic_ns"]

    def slices(self, category):
        return [one for one in self.trace.json["slices"] if one["categories"] == [category]]

    def check_events(self, kind, detail):
        found = sorted((one["time"] - self.start_ns, one["duration"], one["name"], one["annotations"].get(detail, ""))
                       for one in self.slices(kind))
        self.assertEqual(found, self.model.events(kind))
        return found

    def test_it_keeps_the_rules_and_has_no_unknown_field(self):
        self.assertEqual(self.result.status, 0, self.result)
        self.assertEqual(self.trace.json["complaints"], [])
        self.assertEqual(self.trace.json["sources"], ["clrsampler"])
        self.assertEqual(self.trace.json["attributes"]["creator"], self.model.json["meta"]["creator"])

    def test_each_stack_of_each_thread_has_the_same_weight(self):
        ours, theirs, text = (collections.Counter() for _ in range(3))
        for _, pid, tid, names, weight in self.model.samples():
            ours[pid, tid, names] += weight
        for sample in self.trace.json["samples"]:
            theirs[sample["pid"], sample["tid"], self.trace.names(sample["stack"])] += sample["weight"]
        self.assertGreater(len(ours), 10)
        self.assertEqual(theirs, ours)
        for (_, _, names), weight in theirs.items():
            text[names] += weight
        of_text = collections.Counter()
        for frames, weight in self.folded.stacks:
            of_text[tuple(folded.bare(frame) for frame in frames[1:]) or ("[no stack]",)] += weight
        self.assertEqual(text, of_text)

    def test_times_are_those_of_the_recording(self):
        self.assertEqual(self.trace.json["clock"], MONOTONIC)
        self.assertEqual(self.trace.json["clocks"], {"1": self.model.json["meta"]["start_unix_ns"], str(MONOTONIC): self.start_ns})
        timed = collections.Counter((time + self.start_ns, tid, names) for time, _, tid, names, _ in self.model.samples() if time is not None)
        found = collections.Counter((one["time"], one["tid"], self.trace.names(one["stack"])) for one in self.trace.json["samples"])
        self.assertEqual(timed - found, collections.Counter())
        self.assertEqual(found.total() - timed.total(), sum(time is None for time, *_ in self.model.samples()))
        end_ns = self.start_ns + self.model.json["meta"]["duration_ns"] + LATE_NS
        for one in (*self.trace.json["samples"], *self.trace.json["slices"]):
            self.assertTrue(self.start_ns <= one["time"] <= end_ns, one)

    def test_lanes_have_the_names_of_threads(self):
        threads, strings = self.model.json["threads"], self.model.strings
        names = collections.defaultdict(set)  # a thread may change its name
        for i, tid in enumerate(threads["tid"]):
            names[tid].add((strings[threads["name"][i]] or strings[threads["comm"][i]], threads["pid"][i]))
        for tid, thread in self.trace.json["threads"].items():
            self.assertIn((thread["name"], thread["pid"]), names[int(tid)])
        sampled = {str(sample["tid"]) for sample in self.trace.json["samples"] if sample["tid"]}
        self.assertLessEqual(sampled, set(self.trace.json["threads"]))
        self.assertEqual(list(self.trace.json["processes"]), [str(self.pid)])

    def test_frames_have_their_kinds_and_places(self):
        expected = collections.defaultdict(set)
        for i, kind in enumerate(self.model.frames["kind"]):
            word = self.model.json["frame_kinds"][kind]
            if word in KINDS:
                expected[self.model.strings[self.model.frames["name"][i]]].add((KINDS[word], self.model.frames["address"][i]))
        found = collections.defaultdict(set)
        for stack in self.trace.json["stacks"]:
            for frame in stack:
                if frame["name"] in expected:
                    self.assertTrue(frame["mapping"], frame)
                    found[frame["name"]].add((frame["kind"], frame["address"]))
        self.assertGreater(len(found), 5)
        self.assertEqual(found, {name: expected[name] for name in found})

    def test_each_pause_and_collection_is_there(self):
        pauses = self.check_events("pause", "reason")
        self.check_events("collection", "reason")
        for one in self.slices("pause"):
            self.assertEqual((one["pid"], one["tid"], one["track"]), (self.pid, None, "pauses and collections"))
        if self.MODE == "gc":
            self.assertGreater(len(pauses), 3)

    def test_each_compilation_is_there(self):
        compilations = self.check_events("compilation", "tier")
        if self.MODE == "jit":
            self.assertGreater(len(compilations), 20)

    def test_weights_say_what_they_are(self):
        period_ns = self.model.json["meta"]["period_ns"]
        self.assertEqual(self.trace.json["counters"], [{"name": "samples", "unit": "UNIT_COUNT"}, {"name": "CPU time", "unit": "UNIT_NANOSECONDS"}])
        for sample in self.trace.json["samples"]:
            self.assertEqual(sample["followers"], [period_ns * sample["weight"]])


class PerfettoCompilationsTest(PerfettoTest):
    """The cost of compilations, in a program that compiles."""

    MODE, VIEW = "jit", ("--view", "jit")

    def test_weights_say_what_they_are(self):
        self.assertEqual(self.trace.json["counters"], [{"name": "jit", "unit": "us"}])


class PerfettoWaitsTest(PerfettoTest):
    """The waits of threads."""

    MODE, VIEW = "mix", ("--event", "off-cpu")

    def test_weights_say_what_they_are(self):
        self.assertEqual(self.trace.json["counters"], [{"name": "off-cpu", "unit": "us"}])

    def test_each_wait_is_a_slice_of_its_thread(self):
        waits = collections.Counter()
        by_thread = collections.defaultdict(list)
        for time, _, tid, names, weight in self.model.samples():
            if time is not None:
                by_thread[tid].append((time, names[-1][1:-1], weight * 1000))
        for tid, rows in by_thread.items():
            rows.sort(key=lambda row: row[0])
            for (time, kind, wait_ns), (later, *_) in zip(rows, rows[1:] + [(2 ** 63, )]):
                waits[tid, time, min(wait_ns, later - time), kind] += 1
        found = collections.Counter((one["tid"], one["time"] - self.start_ns, one["duration"], one["name"]) for one in self.slices("wait"))
        self.assertGreater(found.total(), 10)
        self.assertEqual(found, waits)


if __name__ == "__main__":
    harness.main()
