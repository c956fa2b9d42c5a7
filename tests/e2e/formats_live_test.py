#!/usr/bin/env python3
"""One recording in every format: the tools that people open it with find the same weights, and each format converts into the others."""
import base64
import collections
import hashlib
import json
import os
import re
import subprocess
import tempfile
import zlib

import folded
import harness
import otlp_check
import runtimes
import speedscope_live_test
import symbol_servers
from pprof import pprof_tool


GNU, HTL = "process.executable.build_id.gnu", "process.executable.build_id.htlhash"


class Model:
    """Our JSON, read by its description alone (docs/profile-json.md)."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.json = json.load(f)
        self.strings, self.samples = self.json["strings"], self.json["samples"]
        self.stacks, self.own, self.total = collections.Counter(), collections.Counter(), collections.Counter()
        frames, nodes = self.json["frames"], self.json["nodes"]
        weights = self.samples.get("weight") or [1] * len(self.samples["stack"])
        for node, weight in zip(self.samples["stack"], weights):
            names = []
            while node:
                names.append(self.strings[frames["name"][nodes["frame"][node]]])
                node = nodes["parent"][node]
            self.stacks[tuple(reversed(names))] += weight
            if names:
                self.own[names[0]] += weight
            for name in set(names):
                self.total[name] += weight
        self.weight = sum(weights)


class ToolsTest(harness.LiveTest):
    """The tools with which both classes below open files, and a folder for these."""

    @classmethod
    def check_needs(cls):
        super().check_needs()
        speedscope_live_test.SpeedscopeTest.check_needs()
        cls.package = speedscope_live_test.SpeedscopeTest.package
        cls.pprof = pprof_tool()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory(prefix="clrsampler-test-")
        cls.addClassCleanup(cls.folder.cleanup)


class FormatsTest(ToolsTest):
    NEEDS = ("dotnet", "node", "npm")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        paths = {suffix: os.path.join(cls.folder.name, "cpu" + suffix) for suffix in (".json", ".pb.gz", ".speedscope.json")}
        outputs = [argument for path in paths.values() for argument in ("-o", path)]
        with harness.workload(runtimes.INSTALLED, "mix", "--seconds", 30, "--threads", 2) as target:
            cls.result = harness.record("--pid", str(target.host_pid), "--duration", "3s", "--frequency", "499", *outputs)
            cls.tids = {int(tid) for tid in os.listdir(f"/proc/{target.host_pid}/task")}
        cls.paths = paths
        cls.model = Model(paths[".json"])

    def convert(self, suffix, *arguments):
        done = subprocess.run([harness.AGENT, "convert", self.paths[suffix], "-", "--format", "folded", *arguments],
                              capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_every_format_has_the_same_stacks(self):
        self.check_result(self.result, minimum_samples=100)
        for suffix in (".json", ".pb.gz"):
            self.assertEqual(self.convert(suffix), self.result.out, suffix)
        unmarked = collections.Counter()
        for frames, count in self.result.profile.stacks:
            unmarked[tuple(folded.bare(frame) for frame in frames)] += count
        theirs = collections.Counter(dict(folded.parse(self.convert(".speedscope.json")).stacks))
        self.assertEqual(theirs, unmarked)

    def written(self, suffix, form):
        path = os.path.join(self.folder.name, "again" + suffix)
        done = subprocess.run([harness.AGENT, "convert", self.paths[".json"], "-o", path], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, "rb") as f:
            return path, f.read()

    def formats(self):
        """Names of all formats that the program writes, as it says itself."""
        text = subprocess.run([harness.AGENT, "convert", "--help"], capture_output=True, text=True, timeout=300).stdout
        return set(re.search(r"--format FORMAT:\{([a-z,-]+)\}", text)[1].split(","))

    READABLE = {"folded": ".folded", "json": ".json", "pprof": ".pb.gz", "speedscope": ".speedscope.json"}
    PICTURES = {"html": ".html", "svg": ".svg"}
    PARTS = {"order", "callchain", "mip",  # for build tools: of one image, or without weights (compiler_feedback_live_test.py)
             "jitdump"}  # code of one process without weights (perf_jitdump_live_test.py)

    SENT = {"firefox",  # firefox_live_test.py
            "perfetto",  # perfetto_live_test.py
            "otlp"}

    def test_every_format_is_in_these_tests(self):
        self.assertEqual(self.formats(), {*self.READABLE, *self.PICTURES, *self.PARTS, *self.SENT})

    def test_the_otlp_request_keeps_the_rules_and_has_every_sample(self):
        _, request = self.written(".otlp", "otlp")
        checked = otlp_check.Checker(request)
        self.assertEqual(checked.findings, [])
        stacks, threads = collections.Counter(), collections.Counter()
        for attributes, profiles in checked.profiles.resources:
            self.assertTrue(attributes["service.name"], attributes)
            for profile in profiles:
                self.assertEqual((profile["type"], profile["period_type"]), (("samples", "count"), ("cpu", "nanoseconds")))
                self.assertEqual(profile["period"], self.model.json["meta"]["period_ns"])
                self.assertEqual(profile["time"], self.model.json["meta"]["start_unix_ns"])
                for sample in profile["samples"]:
                    stacks[tuple(reversed(checked.profiles.stack(sample["stack"])))] += sample["values"][0]
                    threads[dict(checked.profiles.attribute(i) for i in sample["attributes"])["thread.id"]] += sample["values"][0]
        self.assertEqual(stacks, self.model.stacks)
        ours = collections.Counter()
        for thread in self.model.samples["thread"]:
            ours[self.model.json["threads"]["tid"][thread]] += 1
        self.assertEqual(threads, ours)

    def test_an_otlp_request_says_the_builds_of_all_files(self):
        _, request = self.written(".otlp", "otlp")
        mappings = otlp_check.Profiles(request).mappings()
        builds = mappings.pop("[vdso]", {})
        self.assertLessEqual(set(builds), {GNU})
        for path, builds in mappings.items():
            with open(path, "rb") as f:
                content = f.read()
            digest = hashlib.sha256(content[:4096] + content[-4096:] + len(content).to_bytes(8, "big")).hexdigest()
            expected = {HTL: digest[:32]}
            if content.startswith(b"\x7fELF"):
                expected[GNU] = symbol_servers.build_id(path)
            self.assertEqual(builds, expected, path)
        names = {os.path.basename(path) for path in mappings}
        self.assertLessEqual({"libcoreclr.so", "System.Private.CoreLib.dll", "libc.so.6"}, names)

    def test_json_to_each_format_and_back_has_the_same_weights(self):
        for form, suffix in self.READABLE.items():
            path, _ = self.written(suffix, form)
            back = subprocess.run([harness.AGENT, "convert", path, "-", "--format", "folded"], capture_output=True, timeout=300).stdout
            with self.subTest(form):
                self.assertEqual(folded.parse(back).total, self.model.weight)
                if form != "speedscope":  # which does not know what kind of code a frame is
                    self.assertEqual(back, self.result.out)

    def test_pictures_have_the_same_total(self):
        _, page = self.written(".html", "html")
        data = json.loads(zlib.decompress(base64.b64decode(re.search(rb'id="profile"[^>]*>\s*([A-Za-z0-9+/=]+)', page)[1])))
        self.assertEqual(sum(data["cells"]["weight"]), self.model.weight)
        _, picture = self.written(".svg", "svg")
        self.assertIn(f"all: {self.model.weight} samples", re.search(r"<title>(.*?)</title>", picture.decode())[1])

    def test_samples_have_times_threads_and_the_account(self):
        samples, meta = self.model.samples, self.model.json["meta"]
        self.assertEqual(self.model.weight, self.result.stats["samples"]["written"])
        self.assertEqual(meta["account"]["samples"], self.result.stats["samples"])
        self.assertEqual(meta["period_ns"], harness.period_ns(499))
        self.assertEqual(len(samples["time_ns"]), len(samples["stack"]))
        self.assertEqual(samples["time_ns"], sorted(samples["time_ns"]))
        self.assertLess(samples["time_ns"][-1], meta["duration_ns"] + 100_000_000)
        # All but those that have ended since.
        sampled = {self.model.json["threads"]["tid"][i] for i in set(samples["thread"])}
        self.assertTrue(sampled & self.tids, (sampled, self.tids))
        self.assertEqual({pid for pid in self.model.json["threads"]["pid"]}, set(meta["pids"]))

    def test_pprof_finds_the_same_methods(self):
        def top(*arguments):
            done = subprocess.run([self.pprof, "-top", "-nodecount=0", "-nodefraction=0", "-sample_index=samples", *arguments,
                                   self.paths[".pb.gz"]], capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        own, total = {}, {}
        text = top()
        for line in text.splitlines():
            row = re.fullmatch(r"\s*(\d+)\s+[\d.]+%\s+[\d.]+%\s+(\d+)\s+[\d.]+%\s+(.*?)(?: \(inline\))?", line)
            if row:
                own[row[3]] = own.get(row[3], 0) + int(row[1])
                total[row[3]] = max(total.get(row[3], 0), int(row[2]))
        self.assertIn(f"of {self.model.weight} total", text)
        # Names as they are: nothing is cut or shortened.
        self.assertEqual({name: weight for name, weight in own.items() if weight}, dict(self.model.own))
        self.assertEqual(set(total), set(self.model.total))
        name, weight = self.model.own.most_common(1)[0]
        done = subprocess.run([self.pprof, "-peek", re.escape(name) + "$", "-sample_index=samples", self.paths[".pb.gz"]],
                              capture_output=True, text=True, timeout=300)
        self.assertRegex(done.stdout, rf"(?m)^\s*{weight}\s.*\| {re.escape(name)}$")
        cpu = subprocess.run([self.pprof, "-raw", self.paths[".pb.gz"]], capture_output=True, text=True, timeout=300).stdout
        self.assertIn("PeriodType: cpu nanoseconds", cpu)
        self.assertIn("samples/count cpu/nanoseconds", cpu)

    def test_speedscope_imports_its_own_format(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "speedscope_import.js")
        done = subprocess.run(["node", script, self.package, self.paths[".speedscope.json"]], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        imported = json.loads(done.stdout)
        self.assertEqual(imported["weight"], self.model.weight)
        theirs = collections.Counter()
        for stack, weight in imported["stacks"]:
            theirs[tuple(stack)] += weight
        self.assertEqual(theirs, +self.model.stacks)

    def test_filters_take_parts(self):
        name, weight = self.model.total.most_common(20)[-1]
        focused = folded.parse(self.convert(".json", "--focus", "^" + re.escape(name) + "$"))
        ignored = folded.parse(self.convert(".pb.gz", "--ignore", "^" + re.escape(name) + "$"))
        self.assertEqual(focused.total, weight)
        self.assertEqual(ignored.total, self.model.weight - weight)
        early = folded.parse(self.convert(".json", "--to", "1s")).total
        late = folded.parse(self.convert(".json", "--from", "1s")).total
        self.assertEqual(early + late, self.model.weight)
        self.assertGreater(min(early, late), 0)
        without = self.convert(".json", "--no-kernel")
        self.assertNotIn(b"_[k]", without)
        self.assertEqual(folded.parse(without).total, self.model.weight)


class LinesTest(ToolsTest):
    """A made-up profile with lines, as the tools that know lines show it."""
    NEEDS = ("node", "npm")
    TEXT = ["class Cart", "{", "    int Total()", "    {", "        return items.Sum(Price);", "    }", "}"]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.source = os.path.join(cls.folder.name, "Cart.cs")
        with open(cls.source, "w", encoding="utf-8") as f:
            f.write("\n".join(cls.TEXT) + "\n")
        # Total in three lines, one of them of no known number, and Price without a line.
        profile = {
            "format": "clrsampler-profile", "version": 1, "meta": {"view": "cpu", "unit": "samples", "period_ns": 1000000},
            "strings": ["", "shop", "Shop.Cart.Total", "Shop.Price", cls.source, "Shop"],
            "frame_kinds": ["jit"], "line_kinds": ["none", "exact", "optimised"],
            "frames": {"name": [2, 2, 2, 3], "kind": [0, 0, 0, 0], "module": [5, 5, 5, 5], "source_file": [4, 4, 0, 0],
                       "line": [3, 5, 0, 0], "column": [5, 9, 0, 0], "line_kind": [1, 2, 0, 0]},
            "nodes": {"parent": [0, 0, 0, 0, 2], "frame": [0, 0, 1, 2, 3]},
            "threads": {"comm": [1]}, "samples": {"thread": [0] * 4, "stack": [1, 2, 3, 4], "weight": [10, 20, 30, 40]}}
        cls.json = os.path.join(cls.folder.name, "lines.json")
        with open(cls.json, "w", encoding="utf-8") as f:
            json.dump(profile, f)

    def converted(self, suffix):
        path = os.path.join(self.folder.name, "lines" + suffix)
        done = subprocess.run([harness.AGENT, "convert", self.json, "-o", path], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def shown(self, *arguments):
        done = subprocess.run([self.pprof, "-sample_index=samples", *arguments, self.converted(".pb.gz")], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_pprof_counts_methods_by_method_and_lines_by_line(self):
        def rows(text):
            return {match[3]: (int(match[1]), int(match[2])) for match in re.finditer(r"(?m)^\s*(\d+)\s+[\d.]+%\s+[\d.]+%\s+(\d+)\s+[\d.]+%\s+(.*)$", text)}

        everything = ("-top", "-nodecount=0", "-nodefraction=0")
        self.assertEqual(rows(self.shown(*everything)), {"Shop.Cart.Total": (60, 100), "Shop.Price": (40, 40)})
        self.assertEqual(rows(self.shown(*everything, "-lines")),
                         {f"Shop.Cart.Total {self.source}:3": (10, 10), f"Shop.Cart.Total {self.source}:5": (20, 60),
                          "Shop.Cart.Total": (30, 30), "Shop.Price": (40, 40)})

    def test_pprof_lists_the_source_of_a_method(self):
        text = self.shown("-list", "Cart.Total")
        self.assertRegex(text, r"(?m)^\s*10\s+10\s+3:\s*int Total\(\)$")
        self.assertRegex(text, r"(?m)^\s*20\s+60\s+5:\s*return items\.Sum\(Price\);$")

    def test_speedscope_has_the_places(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "speedscope_import.js")
        done = subprocess.run(["node", script, self.package, self.converted(".speedscope.json")], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        imported = json.loads(done.stdout)
        self.assertEqual(imported["weight"], 100)
        self.assertEqual(sorted(imported["places"]), [["Shop.Cart.Total", self.source, 3, 5], ["Shop.Cart.Total", self.source, 5, 9]])

    def test_folded_text_has_lines_before_the_mark(self):
        with open(self.converted(".folded"), encoding="utf-8") as f:
            self.assertEqual(f.read().splitlines(), ["shop;Shop.Cart.Total:3_[j] 10", "shop;Shop.Cart.Total:5_[j] 20", "shop;Shop.Cart.Total:5_[j];Shop.Price_[j] 40",
                                                     "shop;Shop.Cart.Total_[j] 30"])


if __name__ == "__main__":
    harness.main()
