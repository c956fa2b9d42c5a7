#!/usr/bin/env python3
"""The page of a real `clrsampler serve`, on real .NET programs, in headless Chromium (tests/page/serve_live_browser_test.mjs).
serve_page_test has a made-up server, and what a page must do with all that one may say."""
import json
import signal
import time

import harness
import page_test_case
import runtimes
from service import Service
from watcher import truth_of


class ServePageLiveTest(harness.LiveTest, page_test_case.PageTestCase):
    NEEDS = ("dotnet",)

    @classmethod
    def setUpClass(cls):
        harness.LiveTest.setUpClass.__func__(cls)
        page_test_case.PageTestCase.setUpClass.__func__(cls)

    def test_in_the_browser(self):
        # The host's other programs would be most of the picture, and how much is chance.
        with Service("--frequency", 99, "--trigger", "pause>1us", "--comm", "dotnet") as service, \
                harness.workload(runtimes.INSTALLED, "pauses", "--seconds", 300) as pausing:
            service.wait_for_windows(2)
            before = {"from": self.newest(service)}
            pausing.signal(signal.SIGHUP)
            truth = truth_of(pausing)
            service.wait_for_windows(2)
            before["to"] = self.newest(service)
            with harness.workload(runtimes.INSTALLED, "split", "--seconds", 300) as busy:
                service.wait_for_windows(1)
                after = {"from": self.newest(service)}
                service.wait_for_windows(4)
                after["to"] = self.newest(service)
                end = time.monotonic() + 150  # a recording is written when the time behind its event is over
                while not service.json("/api/recordings")["recordings"] and time.monotonic() < end:
                    time.sleep(0.5)
                facts = {"busy": self.named(busy), "pausing": {**self.named(pausing), "pauses": sum(truth["counts"][:1])}, "before": before,
                         "after": after}
                self.check_in_browser("serve_live_browser_test.mjs", PAGE_URL=f"http://{service.address[0]}:{service.address[1]}/?token={service.token}",
                                      PAGE_FACTS=json.dumps(facts))
            self.assertEqual(service.stop(), 0)

    @staticmethod
    def newest(service):
        return service.json("/api/status")["newest"]

    @staticmethod
    def named(target):
        return {"pid": target.host_pid, "label": f"{target.comm()} ({target.host_pid})"}


if __name__ == "__main__":
    harness.main()
