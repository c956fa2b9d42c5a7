#!/usr/bin/env python3
"""Pages of `record --event wall --wakers` of three real programs in a browser: a lock, a starved thread pool, and a call that is sync over async
(tests/apps/waits). docs/waits.md tells the same steps.

--pictures FOLDER: makes the pictures of docs/waits.md there.
"""
import json
import os
import time

import harness
import page_test_case
import runtimes
from waits_live_test import Program

PICTURES = page_test_case.pictures_folder()
NEWEST = runtimes.PACKED_VERSIONS[-1]
SECONDS = 4


class WaitsPageTest(page_test_case.PageTestCase, harness.LiveTest):
    NEEDS = ("dotnet",)

    def record(self, name, *mode, during=None):
        page = os.path.join(self.folder, f"{name}.html")
        with Program(NEWEST, *mode) as program:
            if during:
                program.process.stdin.write(f"{SECONDS + 2}\n")
                program.process.stdin.flush()
            time.sleep(1)
            done = page_test_case.run(harness.AGENT, "record", "--event", "wall", "--wakers", "--pid", str(program.pid), "-d", f"{SECONDS}s", "-q", "-o", page)
            self.assertEqual(done.returncode, 0, done.stderr)
        return page

    def test_what_the_page_alone_tells(self):
        pages = {"lock": self.record("lock", during=True), "starved": self.record("starved", "pool", "starved"),
                 "blocking": self.record("blocking", "pool", "blocking")}
        self.check_in_browser("waits_browser_test.mjs", pictures=PICTURES, WAIT_PAGES=json.dumps(pages))
        if PICTURES:
            page_test_case.shrink(PICTURES, "waits")


if __name__ == "__main__":
    harness.main()
