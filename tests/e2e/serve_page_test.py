#!/usr/bin/env python3
"""The page of `clrsampler serve` in a browser: the checked-in bundle is what its sources say, its parts are right, and headless Chromium
drives it, against a made-up server (tests/page/fake_serve.mjs).
serve_page_live_test has a real server.

--pictures FOLDER: makes the pictures of docs/serve-page.md there.
"""
import filecmp
import os

import harness
import page_test_case
import runtimes

PAGE = os.path.join(runtimes.SOURCE, "userspace", "export", "page")
PICTURES = page_test_case.pictures_folder()


class ServePageTest(page_test_case.PageTestCase):
    def test_bundle_is_what_its_sources_say(self):
        for name in ("app.js", "app.css", "licences.txt"):
            self.assertTrue(filecmp.cmp(os.path.join(self.folder, "serve", name), os.path.join(PAGE, "built", name), shallow=False),
                            f"userspace/export/page/built/{name} is older than its sources: run tools/build_page")

    def test_parts(self):
        self.check_parts("serve_model_test.mjs")

    def test_in_the_browser(self):
        out = self.check_in_browser("serve_browser_test.mjs", pictures=PICTURES)
        print(next((line for line in out.splitlines() if "timeline drawn in" in line), ""))
        if PICTURES:
            page_test_case.shrink(PICTURES, "serve-page")

    def test_lanes_in_the_browser(self):
        self.check_in_browser("serve_lanes_browser_test.mjs")


if __name__ == "__main__":
    harness.main()
