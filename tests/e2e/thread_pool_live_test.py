#!/usr/bin/env python3
"""`clrsampler threadpool` and `clrsampler doctor` say whether a thread pool is starved, and what its own fields say (tests/apps/waits).

  thread_pool_live_test.py                        three services of each sort, on the newest runtime
  CLRSAMPLER_SERVICES=full thread_pool_live_test.py   ten services of each sort, on the oldest and the newest one
"""
import json
import os
import subprocess
import time

import harness
import runtimes
from waits_program import Program

FULL = os.environ.get("CLRSAMPLER_SERVICES") == "full"
VERSIONS = runtimes.PACKED_VERSIONS if runtimes.MATRIX else (runtimes.PACKED_VERSIONS[0], runtimes.PACKED_VERSIONS[-1])
NEWEST = runtimes.PACKED_VERSIONS[-1]
SECONDS = 3
STARVED = ("result", "full-event") + (("event", "wait", "get-result", "wait-all", "handle", "slot", "count", "full-result") if FULL else ())
HEALTHY = ("sleeps", "busy") + (
    ("asynchronous", "computes", "nothing", "few-results", "lock", "completed", "waits-for-good", "full-sleeps") if FULL else ())
FULL_WORKERS = {"full-event": 6, "full-result": 8, "full-sleeps": 8}
UNLIMITED = 32767  # what the runtime allows where nobody says otherwise


def pool_of(program, *arguments):
    out = subprocess.run([harness.AGENT, "threadpool", "--pid", str(program.pid), "-d", str(SECONDS), *arguments],
                         stdout=subprocess.PIPE, check=True, text=True, timeout=120).stdout
    return json.loads(out) if "--json" in arguments else out


def finding_of(program):
    """The doctor's finding about the pool."""
    done = subprocess.run([harness.AGENT, "doctor", "--pid", str(program.pid), "--json"], stdout=subprocess.PIPE, text=True, timeout=120)
    (process,) = json.loads(done.stdout)["processes"]
    found = [finding for finding in process["findings"] if finding["check"] == "thread_pool"]
    return found[0] if found else None


class ThreadPoolTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def test_a_starved_pool_is_told_from_others(self):
        for version in VERSIONS if runtimes.MATRIX else (NEWEST,):
            for mode in ("starved", "calm", "busy"):
                with self.subTest(version, mode=mode), Program(version, "pool", mode) as program:
                    time.sleep(1)
                    pool = pool_of(program, "--json")
                    print(f"  {version} {mode}: {pool}", flush=True)
                    self.assertEqual(pool["starved"], mode == "starved")
                    self.assertEqual(pool["workers"], pool["worked"] + pool["idle"] + pool["waited"])
                    self.assertGreater(pool["workers"], 0)
                    self.assertEqual(pool["pool"]["max_workers"], UNLIMITED)
                    self.assertEqual(pool["pool"]["min_workers"], os.cpu_count())
                    if mode == "calm":
                        self.assertGreater(pool["idle"], 0)
                        self.assertEqual(pool["pool"]["queued"], 0)
                    if mode == "starved":
                        site = pool["sites"][0]
                        self.assertEqual((site["kind"], site["method"]), ("task wait", "Waits.Program.AnswersRequest"))
                        self.assertGreaterEqual(site["workers"], 0.8 * pool["workers"])
                        self.assertGreater(pool["came"], 0)
                        self.assertGreater(pool["pool"]["queued"], 0)

    def test_the_pool_s_own_numbers_are_those_of_its_threads(self):
        for version in runtimes.PACKED_VERSIONS:
            with self.subTest(version), Program(version, "service", "full-event") as program:
                time.sleep(1)
                pool = pool_of(program, "--json")["pool"]
                print(f"  {version}: {pool}", flush=True)
                threads = [open(f"/proc/{program.pid}/task/{tid}/comm").read().strip() for tid in os.listdir(f"/proc/{program.pid}/task")]
                self.assertEqual(pool["workers"], threads.count(".NET TP Worker"))
                self.assertEqual((pool["min_workers"], pool["max_workers"]), (6, 6))
                # 500 requests a second come, and nothing is ever answered.
                self.assertGreater(pool["queued"], 100)

    def test_a_full_pool_that_is_starved_says_that_no_worker_will_come(self):
        with Program(NEWEST, "service", "full-event") as program:
            time.sleep(1)
            text = pool_of(program)
            print(text, flush=True)
            self.assertRegex(text, r"^the thread pool is starved: 6 of 6 workers wait, 6 of them in an event below Waits\.Services\.WaitsForEvent; "
                                   r"\d+ work items are queued; it has all the 6 workers that it may have\n")

    def test_services_have_the_right_verdict(self):
        right = 0
        for version in VERSIONS if FULL else (NEWEST,):
            for name in STARVED + HEALTHY:
                with self.subTest(version, service=name), Program(version, "service", name) as program:
                    time.sleep(1)
                    finding = finding_of(program)
                    pool = pool_of(program, "--json")
                    print(f"  {version} {name}: {pool['starved']}, {pool.get('pool')}; doctor: {finding and finding['what']}", flush=True)
                    self.assertEqual(pool["starved"], name in STARVED, pool)
                    self.assertIsNotNone(finding)
                    self.assertEqual("it is starved" in finding["what"], name in STARVED, finding)
                    if name in STARVED:
                        self.assertEqual(finding["level"], "warn")
                    if name in FULL_WORKERS:
                        self.assertEqual(pool["pool"]["max_workers"], FULL_WORKERS[name])
                    right += 1
        print(f"  right in {right} of {len(STARVED + HEALTHY) * (len(VERSIONS) if FULL else 1)}", flush=True)


if __name__ == "__main__":
    harness.main()
