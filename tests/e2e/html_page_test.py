#!/usr/bin/env python3
"""The HTML output in a browser: the checked-in bundle is what its sources say, its parts are right, and headless Chromium drives it.

--pictures FOLDER: makes the pictures of docs/flame-graph.md there.
--day FILE: says how fast the page of a day is that build/release/tests/bench/day_page has made.
"""
import filecmp
import os
from random import Random

import harness
import page_test_case
import runtimes

SOURCE = os.path.join(runtimes.SOURCE, "userspace", "output", "page")
PICTURES = page_test_case.pictures_folder()
DAY = page_test_case.day_page()


class HtmlPageTest(page_test_case.PageTestCase):
    def test_bundle_is_what_its_sources_say(self):
        self.assertTrue(filecmp.cmp(os.path.join(self.folder, "page.html"), os.path.join(SOURCE, "page.html"), shallow=False),
                        "userspace/output/page/page.html is older than its sources: run tools/build_page")

    def test_parts(self):
        self.check_parts("model_test.mjs")
        self.check_parts("waits_model_test.mjs")
        self.check_parts("time_model_test.mjs")

    def test_in_the_browser(self):
        out = self.check_in_browser("browser_test.mjs", pictures=PICTURES, PROGRAM_DIFF=self.program_diff(), **self.program_page())
        print(next((line for line in out.splitlines() if "first paint" in line), ""))
        if PICTURES:
            page_test_case.shrink(PICTURES, "flame-graph")

    def test_time_in_the_browser(self):
        path = self.timed_profile()
        page = os.path.join(self.folder, "timed.html")
        done = page_test_case.run(harness.AGENT, "convert", path, "-o", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        more = {"DAY_PAGE": os.path.abspath(DAY)} if DAY else {}
        if PICTURES:
            more["PICTURE_PAGE"] = self.minute_page()
        out = self.check_in_browser("time_browser_test.mjs", pictures=PICTURES, TIMED_PAGE=page, TIMED_JSON=path, **more)
        print(next((line for line in out.splitlines() if "day: map" in line), ""))

    def test_table_in_the_browser(self):
        self.check_in_browser("table_browser_test.mjs")

    def test_waits_in_the_browser(self):
        self.check_in_browser("waits_browser_test.mjs")

    def program_page(self):
        """A page that the program wrote, of a real recording, where one can be made."""
        if os.geteuid() != 0 or not os.path.exists(harness.MINIJIT):
            self.assertFalse(harness.REQUIRE_LIVE, "a recording needs root and the mini-JIT")
            return {}
        page = os.path.join(self.folder, "recorded.html")
        stats = os.path.join(self.folder, "stats.json")
        done = page_test_case.run(harness.AGENT, "record", "--duration", "60s", "--frequency", "499", "--output", page, "--stats", stats,
                                  "--", harness.MINIJIT, "--seconds", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(stats) as f:
            written = harness.json.load(f)["samples"]["written"]
        self.assertGreater(written, 100)
        return {"PROGRAM_PAGE": page, "PROGRAM_SAMPLES": str(written)}

    def minute_page(self):
        """A minute of the workload, for pictures."""
        page = os.path.join(self.folder, "minute.html")
        command, environment = runtimes.command(runtimes.PACKED_VERSIONS[-1], "mix", "--threads", "3", "--seconds", "60")
        done = page_test_case.run(harness.AGENT, "record", "--duration", "60s", "--output", page, "--", *command, env={**os.environ, **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return page

    def program_diff(self):
        """The page that the program writes of a difference: Slow has a third more, Fast loses it, Read is inlined into its caller."""
        before = self.profile("before.json", {"Slow": 3000, "Fast": 3000, "Same": 3020, "Read": 0, "Read;Copy": 980})
        after = self.profile("after.json", {"Slow": 4000, "Fast": 2000, "Same": 3000, "Copy": 1000})
        page = os.path.join(self.folder, "diff.html")
        done = page_test_case.run(harness.AGENT, "diff", before, after, "-o", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        return page

    def profile(self, name, stacks):
        """A profile of ours: each stack below Main, half of its samples on each of two threads."""
        strings, frames, nodes = ["", "shop", "worker", "main"], [], [(0, 0)]

        def node(parent, text):
            text = f"Shop.{text}"
            if text not in strings:
                strings.append(text)
                frames.append(len(strings) - 1)
            key = (parent, frames.index(strings.index(text)))
            if key not in nodes[1:]:
                nodes.append(key)
            return nodes.index(key, 1)

        samples = []
        for text, weight in stacks.items():
            at = node(0, "Main")
            for part in text.split(";"):
                at = node(at, part)
            samples += [(thread, at, weight // 2) for thread in (0, 1) if weight]
        profile = {
            "format": "clrsampler-profile", "version": 1, "meta": {"view": "cpu", "unit": "samples", "period_ns": 1000000}, "strings": strings,
            "frame_kinds": ["jit"], "frames": {"name": frames, "kind": [0] * len(frames)},
            "nodes": {"parent": [parent for parent, _ in nodes], "frame": [frame for _, frame in nodes]},
            "threads": {"pid": [7, 7], "tid": [7, 8], "comm": [1, 1], "name": [3, 2]},
            "samples": {"thread": [s[0] for s in samples], "stack": [s[1] for s in samples], "weight": [s[2] for s in samples]}}
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            harness.json.dump(profile, f)
        return path


    def timed_profile(self):
        """Ten seconds of 5,000 samples of three methods on two threads, and seven samples without a time."""
        path = self.profile("timed.json", {"Slow": 2, "Fast": 2, "Same": 2})
        with open(path) as f:
            profile = harness.json.load(f)
        random = Random(4)
        rows = sorted((random.randrange(10 ** 10), random.randrange(2), random.randrange(1, 5)) for _ in range(5000))
        columns = {"time_ns": [row[0] for row in rows] + [None], "thread": [row[1] for row in rows] + [0],
                   "stack": [row[2] for row in rows] + [1], "weight": [1 + i % 3 for i in range(len(rows))] + [7]}
        profile["samples"] = columns
        profile["meta"]["duration_ns"] = 10 ** 10
        with open(path, "w") as f:
            harness.json.dump(profile, f)
        return path


if __name__ == "__main__":
    harness.main()
