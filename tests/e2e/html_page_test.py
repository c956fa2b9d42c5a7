#!/usr/bin/env python3
"""The HTML output in a browser: the checked-in bundle is what its sources say, its parts are right, and headless Chromium drives it.

--pictures FOLDER: makes the pictures of docs/flame-graph.md there.
"""
import filecmp
import os
import sys

import harness
import page_test_case
import runtimes

SOURCE = os.path.join(runtimes.SOURCE, "userspace", "output", "page")
PICTURES = None


class HtmlPageTest(page_test_case.PageTestCase):
    def test_bundle_is_what_its_sources_say(self):
        self.assertTrue(filecmp.cmp(os.path.join(self.folder, "page.html"), os.path.join(SOURCE, "page.html"), shallow=False),
                        "userspace/output/page/page.html is older than its sources: run tools/build_page")

    def test_parts(self):
        self.check_parts("model_test.mjs")

    def test_in_the_browser(self):
        out = self.check_in_browser("browser_test.mjs", pictures=PICTURES, **self.program_page())
        print(next((line for line in out.splitlines() if "first paint" in line), ""))
        if PICTURES:
            page_test_case.shrink(PICTURES, "flame-graph")

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


if __name__ == "__main__":
    if "--pictures" in sys.argv:
        at = sys.argv.index("--pictures")
        PICTURES = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    harness.main()
