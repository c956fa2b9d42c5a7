#!/usr/bin/env python3
"""Samples of threads that publish a trace and a span have exactly these ids, in OTLP and pprof, for each way in which a library reaches
its thread-local variable. Samples of other threads have none."""
import collections
import gzip
import os
import subprocess
import tempfile

import harness
import otlp_check
import runtimes

APPS = os.environ.get("TRACE_LIBRARIES", os.path.join(runtimes.SOURCE, "build", "release", "tests", "apps"))
LIBRARIES = [name for name in ("descriptor", "index", "initial") if os.path.exists(os.path.join(APPS, f"libtrace_{name}.so"))]
VERSIONS = ("8.0.30", "10.0.14")
ONE, FIRST, SECOND = ("11" * 16, "22" * 8), ("33" * 16, "44" * 8), ("33" * 16, "55" * 8)
# Samples of a thread that may have them, by what the thread burns CPU time in.
EXPECTED = {("traced-one", "BurnInFirst"): ONE, ("traced-two", "BurnInFirst"): FIRST, ("traced-two", "BurnInSecond"): SECOND,
            ("untraced", "BurnInFirst"): None}
RIGHT = 0.99


def link_of(profiles, index):
    if index == 0:
        return None
    link = otlp_check.grouped(profiles.dictionary["link"][index])
    return otlp_check.one(link, 1, b"").hex(), otlp_check.one(link, 2, b"").hex()


def burner(names):
    for name in names:
        for method in ("BurnInFirst", "BurnInSecond"):
            if f"Program.{method}" in name:
                return method
    return None


class Seen:
    def __init__(self):
        self.right, self.without, self.wrong = collections.Counter(), collections.Counter(), collections.Counter()

    def add(self, thread, names, link, count):
        key = thread, burner(names)
        if key not in EXPECTED:
            if link is not None and thread not in ("traced-one", "traced-two"):
                self.wrong[thread, link] += count
            return
        wanted = EXPECTED[key]
        (self.right if link == wanted else self.without if link is None else self.wrong)[key] += count

    def check(self, test, what, least):
        print(f"    {what}: {sum(self.right.values())} right, {sum(self.without.values())} without, {sum(self.wrong.values())} wrong", flush=True)
        test.assertEqual(self.wrong, {})
        for key in EXPECTED:
            test.assertGreater(self.right[key], least, (what, key, self.without))
            test.assertGreaterEqual(self.right[key], RIGHT * (self.right[key] + self.without[key]), (what, key))


def judge_otlp(test, request):
    checked = otlp_check.Checker(request)
    test.assertEqual(checked.findings, [])
    seen = Seen()
    for _, profiles in checked.profiles.resources:
        for profile in profiles:
            for sample in profile["samples"]:
                attributes = dict(checked.profiles.attribute(i) for i in sample["attributes"])
                count = sum(sample["values"]) or len(sample["times"])
                seen.add(attributes.get("thread.name"), checked.profiles.stack(sample["stack"]), link_of(checked.profiles, sample["link"]),
                         count)
    return seen


def judge_pprof(data):
    profile = otlp_check.grouped(gzip.decompress(data))
    strings = [text.decode() for text in profile[6]]
    names = {}
    for encoded in profile[5]:
        function = otlp_check.grouped(encoded)
        names[otlp_check.one(function, 1)] = strings[otlp_check.one(function, 2)]
    functions = {}
    for encoded in profile[4]:
        location = otlp_check.grouped(encoded)
        functions[otlp_check.one(location, 1)] = [names[otlp_check.one(otlp_check.grouped(line), 1)] for line in location[4]]
    seen = Seen()
    for encoded in profile[2]:
        sample = otlp_check.grouped(encoded)
        labels = {}
        for label in map(otlp_check.grouped, sample[3]):
            labels[strings[otlp_check.one(label, 1)]] = strings[otlp_check.one(label, 2)]
        link = (labels["trace_id"], labels["span_id"]) if "trace_id" in labels else None
        stack = [name for location in otlp_check.packed(sample, 1) for name in functions[location]]
        seen.add(labels.get("thread"), stack, link, otlp_check.packed(sample, 2)[0])
    return seen


class TraceThreadsTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    @classmethod
    def check_needs(cls):
        super().check_needs()
        if not LIBRARIES:
            raise harness.Missing(f"no libtrace_*.so in {APPS}; build them, or name their folder in TRACE_LIBRARIES")

    def program(self, version, library):
        command, env = runtimes.command(version, os.path.join(APPS, f"libtrace_{library}.so"), "3600", program="trace_threads")
        return harness.Target(command, env)

    def written(self, target, *suffixes):
        """The bytes of a recording in each format, with its stats; and the saved stream's path."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        results = {}
        for suffix in suffixes:
            path, stream = os.path.join(folder.name, f"out{suffix}"), os.path.join(folder.name, f"stream{suffix}")
            recorded = harness.record("--pid", str(target.host_pid), "--duration", "5s", "--frequency", "499", "--save-stream", stream,
                                      "--output", path)
            self.assertEqual(recorded.status, 0, recorded)
            with open(path, "rb") as f:
                results[suffix] = f.read(), stream, recorded
        return results

    def test_samples_have_the_ids_of_their_thread(self):
        for version in VERSIONS if runtimes.MATRIX else VERSIONS[-1:]:
            for library in LIBRARIES:
                with self.subTest(version=version, library=library), self.program(version, library) as target:
                    request, stream, recorded = self.written(target, ".otlp")[".otlp"]
                    judge_otlp(self, request).check(self, f"{version} {library}", 60)
                    self.assertNotIn("trace ids", recorded.err)
                    played_path = os.path.join(os.path.dirname(stream), "played.otlp")
                    played = subprocess.run([harness.AGENT, "replay", stream, "--output", played_path], capture_output=True, timeout=120)
                    self.assertEqual(played.returncode, 0, played.stderr)
                    with open(played_path, "rb") as f:
                        judge_otlp(self, f.read()).check(self, f"{version} {library} again", 60)

    def test_pprof_has_them_as_labels(self):
        with self.program(VERSIONS[-1], LIBRARIES[0]) as target:
            data, _, _ = self.written(target, ".pb.gz")[".pb.gz"]
        judge_pprof(data).check(self, "pprof", 60)

    def test_folded_stacks_are_as_they_were(self):
        """Equal stacks of different spans are one line."""
        with self.program(VERSIONS[-1], LIBRARIES[0]) as target:
            agent = harness.Agent(["--pid", str(target.host_pid), "--frequency", "499"])
            agent.wait_until_sampling()
            target.use_cpu(1.5)
            agent.interrupt()
            recorded = agent.finish(180)
        self.assertEqual(recorded.status, 0, recorded)
        stacks = [line.rsplit(b" ", 1)[0] for line in recorded.out.splitlines()]
        self.assertEqual(len(stacks), len(set(stacks)))
        traces = recorded.stats["traces"]
        self.assertGreater(traces["read"], 200, traces)
        self.assertGreater(traces["none"], 100, traces)
        self.assertEqual(traces["unreadable"], 0, traces)


if __name__ == "__main__":
    harness.main()
