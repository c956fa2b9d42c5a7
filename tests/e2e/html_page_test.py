#!/usr/bin/env python3
"""The HTML output in a browser: the checked-in bundle is what its sources say, its parts are right, and headless Chromium drives it.

--pictures FOLDER: makes the pictures of docs/flame-graph.md there.
"""
import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness
import runtimes

PLAYWRIGHT_VERSION = "1.65.1"
SOURCE = os.path.join(runtimes.SOURCE, "userspace", "output", "page")
TESTS = os.path.join(runtimes.SOURCE, "tests", "page")
PICTURES = None


def run(*command, timeout=300, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)


def playwright():
    """Folder of playwright-core, which drives the distribution's browser and brings none."""
    place = os.path.join(runtimes.BUILD, "npm", "browser")
    if not os.path.exists(os.path.join(place, "node_modules", "playwright-core", "package.json")):
        os.makedirs(place, exist_ok=True)
        done = run("npm", "install", "--no-audit", "--no-fund", "--no-save", "--prefix", place, f"playwright-core@{PLAYWRIGHT_VERSION}", cwd=place)
        if done.returncode:
            raise harness.Missing(f"npm install playwright-core failed: {done.stderr.strip()[-400:]}")
    return os.path.join(place, "node_modules")


class HtmlPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for need in ("node", "npm", "chromium"):
            if shutil.which(need) is None:
                raise harness.Missing(f"{need} is not installed")
        cls.folder = tempfile.mkdtemp(prefix="clrsampler-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.built = os.path.join(cls.folder, "page.html")
        done = run(os.path.join(runtimes.SOURCE, "tools", "build_page"), cls.built)
        if done.returncode:
            raise harness.Missing(f"tools/build_page failed: {done.stderr.strip()[-400:]}")
        cls.modules = os.path.join(runtimes.BUILD, "npm", "page", "node_modules")

    def check_node(self, *command, **environment):
        done = run("node", *command, env={**os.environ, "NODE_DISABLE_COLORS": "1", **environment})
        if done.returncode:
            self.fail(f"{done.stdout[-20000:]}\n{done.stderr[-4000:]}")
        return done.stdout

    def test_bundle_is_what_its_sources_say(self):
        self.assertTrue(filecmp.cmp(self.built, os.path.join(SOURCE, "page.html"), shallow=False),
                        "userspace/output/page/page.html is older than its sources: run tools/build_page")

    def test_parts(self):
        self.check_node(os.path.join(TESTS, "run_bundled.mjs"), self.modules, os.path.join(TESTS, "model_test.mjs"), self.folder)

    def test_in_the_browser(self):
        environment = {"PLAYWRIGHT": playwright(), "CHROMIUM": shutil.which("chromium")}
        if PICTURES:
            environment["PICTURES"] = os.path.abspath(PICTURES)
        environment.update(self.program_page())
        out = self.check_node("--test", "--test-reporter=spec", os.path.join(TESTS, "browser_test.mjs"), **environment)
        print(next((line for line in out.splitlines() if "first paint" in line), ""))
        if PICTURES and shutil.which("pngquant"):  # to a third of their size
            pictures = [os.path.join(PICTURES, name) for name in os.listdir(PICTURES) if name.startswith("flame-graph")]
            run("pngquant", "--force", "--ext", ".png", "--skip-if-larger", "--strip", "--quality", "70-95", *pictures)

    def program_page(self):
        """A page that the program wrote, of a real recording, where one can be made."""
        if os.geteuid() != 0 or not os.path.exists(harness.MINIJIT):
            self.assertFalse(harness.REQUIRE_LIVE, "a recording needs root and the mini-JIT")
            return {}
        page = os.path.join(self.folder, "recorded.html")
        stats = os.path.join(self.folder, "stats.json")
        done = run(harness.AGENT, "record", "--duration", "60s", "--frequency", "499", "--output", page, "--stats", stats,
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
