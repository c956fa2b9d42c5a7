"""The common part of the tests of the pages: built bundles, node, and a browser that is driven."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness
import runtimes

PLAYWRIGHT_VERSION = "1.65.1"
# Chromium without a window, for two fifths of the CPU time of the whole one: 21 s and not 56 s for browser_test.mjs.
BROWSER = "chromium-headless-shell"
TESTS = os.path.join(runtimes.SOURCE, "tests", "page")


def run(*command, timeout=1500, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)


def playwright():
    """Folder of playwright-core, which drives the distribution's browser and brings none."""
    return os.path.dirname(runtimes.npm_package("playwright-core", PLAYWRIGHT_VERSION, "browser"))


def pictures_folder():
    """The value of --pictures; None: it is not there."""
    return _take("--pictures") if "--pictures" in sys.argv else None


def day_page():
    """The value of --day; None: it is not there."""
    return _take("--day") if "--day" in sys.argv else None


def _take(option):
    """The value of an option, which is taken off the command line with it."""
    at = sys.argv.index(option)
    value = sys.argv[at + 1]
    del sys.argv[at:at + 2]
    return value


def shrink(folder, prefix):
    """Pictures to a third of their size, where pngquant is."""
    if shutil.which("pngquant"):
        pictures = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith(prefix)]
        run("pngquant", "--force", "--ext", ".png", "--skip-if-larger", "--strip", "--quality", "70-95", *pictures)


class PageTestCase(unittest.TestCase):
    """folder: has the pages as they are built from their sources now; modules: the libraries in them."""

    @classmethod
    def setUpClass(cls):
        for need in ("node", "npm", BROWSER):
            if shutil.which(need) is None:
                raise harness.Missing(f"{need} is not installed")
        cls.folder = tempfile.mkdtemp(prefix="clrsampler-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        done = run(os.path.join(runtimes.SOURCE, "tools", "build_page"), cls.folder)
        if done.returncode:
            raise harness.Missing(f"tools/build_page failed: {done.stderr.strip()[-400:]}")
        cls.modules = os.path.join(runtimes.BUILD, "npm", "page", "node_modules")

    def check_node(self, *command, **environment):
        done = run("node", *command, env={**os.environ, "NODE_DISABLE_COLORS": "1", **environment})
        if done.returncode:
            self.fail(f"{done.stdout[-20000:]}\n{done.stderr[-4000:]}")
        return done.stdout

    def check_parts(self, name):
        """Runs a test of the page's sources that needs no browser."""
        self.check_node(os.path.join(TESTS, "run_bundled.mjs"), self.modules, os.path.join(TESTS, name), self.folder)

    def check_in_browser(self, name, pictures=None, **environment):
        environment.update(PLAYWRIGHT=playwright(), CHROMIUM=shutil.which(BROWSER))
        if pictures:
            environment["PICTURES"] = os.path.abspath(pictures)
        return self.check_node("--test", "--test-reporter=spec", os.path.join(TESTS, name), **environment)
