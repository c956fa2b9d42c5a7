#!/usr/bin/env python3
"""`record --event off-cpu`, `--event wall`, `clrsampler wall` and `clrsampler locks` against a program that measures its own waits
(tests/apps/waits)."""
import collections
import json
import math
import os
import subprocess
import tempfile
import time

import harness
import runtimes

VERSIONS = runtimes.PACKED_VERSIONS if runtimes.MATRIX else (runtimes.PACKED_VERSIONS[0], runtimes.PACKED_VERSIONS[-1])
NEWEST = runtimes.PACKED_VERSIONS[-1]
SECONDS = 3
# Of the time at a site: what it takes to measure, and spinning of less than a millisecond before a wait.
OWN_ERROR = 0.03
# Waits that are passed over make sums at a site estimates. So many standard errors are exceeded once in 10^9 comparisons.
SIGMAS = 6


def kind_of(stack):
    """(kind, index of its mark) of a stack."""
    for index, frame in enumerate(stack):
        if frame.startswith("[woken"):
            return stack[index - 1][1:-1], index - 1
    return (stack[-1][1:-1] if stack[-1].startswith("[") else "running"), len(stack) - 1


class Program:
    def __init__(self, version, *arguments):
        command, additions = runtimes.command(version, *arguments, program="waits")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **additions}, start_new_session=True)
        if self.process.stdout.readline() != "ready\n":
            raise AssertionError("the program did not start")
        self.pid = self.process.pid

    def wait(self, seconds):
        """What it waited, by site."""
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


class WaitsTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="waits-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def record(self, program, event, *arguments, during):
        """(what `during` gave, [(stack, microseconds)], stats) of a recording around it."""
        with open(self.path("err"), "wb") as err:
            recorder = subprocess.Popen([harness.AGENT, "record", "--event", event, "--pid", str(program.pid),
                                         "-o", self.path("out.folded"), "--stats", self.path("stats.json"), *arguments], stderr=err)
        self.addCleanup(recorder.kill)
        said = self.path("err")
        deadline = time.monotonic() + 60
        while not os.path.getsize(said):
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(recorder.poll())
            time.sleep(0.01)
        time.sleep(0.3)  # the clock starts behind that sentence
        given = during()
        recorder.send_signal(2)
        self.assertEqual(recorder.wait(60), 0, said)
        return given, self.stacks("out.folded"), self.stats()

    def stacks(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return [(stack.split(";"), int(number)) for stack, _, number in (line.rpartition(" ") for line in file)]

    def stats(self):
        with open(self.path("stats.json"), encoding="utf-8") as file:
            return json.load(file)

    def check_sites(self, truth, stacks, waits):
        passed = waits["passed_over"] / max(1, waits["passed_over"] + waits["kept"])
        for site in truth:
            kinds, wakers = collections.Counter(), collections.Counter()
            for stack, microseconds in stacks:
                kind, mark = kind_of(stack)
                if site["method"] + "_[j]" not in stack[:mark]:
                    continue
                kinds[kind] += microseconds
                if kind == site["kind"]:
                    wakers[stack[mark + 1] if mark + 1 < len(stack) else ""] += microseconds
            told, real = sum(kinds.values()), site["ns"] / 1000
            error = OWN_ERROR + SIGMAS * math.sqrt(passed / (1 - passed) / max(1, site["waits"]))
            print(f"  {site['method']}: {told / real:.3f} of its time ({error:.3f} allowed), {dict(kinds)}", flush=True)
            # Who spins for his turn on a busy machine waits for a CPU, in parts that may be short.
            spins = site["kind"] in ("task wait", "semaphore")
            self.assertLess(told / real, 1 + error, site)
            self.assertGreater(told / real, (0.8 if spins else 1) - error, site)
            wrong = told - kinds[site["kind"]] - kinds["runnable"]
            self.assertLessEqual(wrong, 0.02 * told, (site, kinds))
            if site["waker"] and wakers:
                right = sum(count for waker, count in wakers.items() if waker == f"[woken by thread {site['waker']}]")
                self.assertGreaterEqual(right, 0.99 * sum(wakers.values()), (site, wakers))
            if site["kind"] == "sleep":
                self.assertGreaterEqual(wakers["[woken by an interrupt]"], 0.9 * sum(wakers.values()), wakers)

    def test_waits_have_their_kind_their_time_and_their_waker(self):
        for version in VERSIONS:
            with self.subTest(version), Program(version) as program:
                truth, stacks, stats = self.record(program, "off-cpu", "--wakers", during=lambda: program.wait(SECONDS))
                print(f"{version}: {stats['waits']}", flush=True)
                self.check_sites(truth, stacks, stats["waits"])
                waits = stats["waits"]
                self.assertEqual(waits["ended"], waits["short"] + waits["passed_over"] + waits["kept"])
                self.assertEqual(waits["records_lost"], 0)
                self.assertEqual(waits["late_stacks"], 0)
                lost = sum(count for stack, count in stacks if "[stack not taken]" in stack)
                self.assertLess(lost, 0.01 * sum(count for _, count in stacks))

    def test_running_and_waiting_are_the_life_of_all_threads(self):
        with Program(NEWEST) as program:
            time.sleep(2)  # threads that start come to rest

            def rest():
                before = program.threads()
                began = time.monotonic()
                time.sleep(SECONDS)
                return before, program.threads(), time.monotonic() - began

            (before, after, _), stacks, stats = self.record(program, "wall", during=rest)
            told = sum(count for _, count in stacks) / 1e6
            seconds = stats["duration_seconds"]
            print(f"  {told:.3f} s of {before} threads, then {after}, in {seconds:.3f} s", flush=True)
            # The runtime may end a helper meanwhile, or begin one.
            self.assertGreater(told, 0.99 * min(before, after) * seconds)
            self.assertLess(told, 1.01 * max(before, after) * seconds)

    def test_a_thread_that_waits_all_the_time_has_its_stack(self):
        with Program(NEWEST) as program:
            time.sleep(1)
            _, stacks, stats = self.record(program, "off-cpu", during=lambda: time.sleep(1.5))
            longest = max(count for stack, count in stacks if any("Console.ReadLine" in frame for frame in stack))
            self.assertGreater(longest / 1e6, 0.9 * 1.5)
            self.assertLess(longest / 1e6, stats["duration_seconds"] + 0.1)

    def test_a_saved_stream_gives_the_same_profile(self):
        with Program(NEWEST) as program:
            stream = self.path("run.stream")
            self.record(program, "off-cpu", "--wakers", "--save-stream", stream, during=lambda: program.wait(1))
        subprocess.run([harness.AGENT, "replay", stream, "-q", "-o", self.path("again.folded")], check=True)
        with open(self.path("out.folded"), "rb") as first, open(self.path("again.folded"), "rb") as second:
            self.assertEqual(sorted(first), sorted(second))

    def test_who_only_wakes_is_named_and_not_followed(self):
        """Other programs keep all CPUs busy, so that the timer's interrupt which ends the wait meets one of them."""
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count())]
        self.addCleanup(lambda: [process.kill() for process in busy])
        subprocess.run([harness.AGENT, "record", "--event", "wall", "--wakers", "-q", "-o", self.path("out.folded"), "--", "sleep", "1"],
                       check=True)
        stacks = self.stacks("out.folded")
        # Before its exec the command is a copy of the agent.
        self.assertLessEqual({stack[0] for stack, _ in stacks}, {"sleep", "clrsampler"})
        slept = [stack for stack, count in stacks if "[sleep]" in stack and count > 900_000]
        self.assertEqual([stack[stack.index("[sleep]") + 1:] for stack in slept], [["[woken by an interrupt]"]])

    def watch(self, command, program):
        watching = subprocess.Popen([harness.AGENT, command, "--pid", str(program.pid), "-d", str(SECONDS), "--json"],
                                    stdout=subprocess.PIPE, text=True)
        program.wait(SECONDS + 1)
        out, _ = watching.communicate(timeout=60)
        self.assertEqual(watching.returncode, 0)
        return json.loads(out)

    def test_locks_have_their_holder_and_wall_its_kinds(self):
        with Program(NEWEST) as program:
            locks = {(site["kind"], site["method"]): site for site in self.watch("locks", program)["sites"]}
            for method, thread in (("EntersFirst", "two in Waits.Program.SecondOwner"), ("EntersSecond", "one in Waits.Program.FirstOwner")):
                site = locks["monitor", f"Waits.Program.{method}"]
                self.assertEqual(site["waker"], f"woken by thread owner {thread}")
                self.assertGreater(site["us"], 0.2 * SECONDS * 1e6)
            self.assertFalse([key for key in locks if key[0] in ("sleep", "socket", "idle", "runnable")])
            wall = self.watch("wall", program)
            kinds = {kind["kind"] for kind in wall["kinds"]}
            self.assertLessEqual({"sleep", "monitor", "event", "socket", "idle", "running"}, kinds)
            self.assertEqual(wall["waited_us"] + wall["running_us"], sum(kind["us"] for kind in wall["kinds"]))

    def test_a_starved_pool_is_told_from_others(self):
        for version in VERSIONS:
            for mode in ("starved", "calm", "busy"):
                with self.subTest(version, mode=mode), Program(version, "pool", mode) as program:
                    time.sleep(1)
                    out = subprocess.run([harness.AGENT, "threadpool", "--pid", str(program.pid), "-d", "3", "--json"],
                                         stdout=subprocess.PIPE, check=True).stdout
                    pool = json.loads(out)
                    print(f"  {version} {mode}: {pool}", flush=True)
                    self.assertEqual(pool["starved"], mode == "starved")
                    self.assertEqual(pool["workers"], pool["worked"] + pool["idle"] + pool["waited"])
                    self.assertGreater(pool["workers"], 0)
                    if mode == "calm":
                        self.assertGreater(pool["idle"], 0)
                    if mode == "starved":
                        site = pool["sites"][0]
                        self.assertEqual((site["kind"], site["method"]), ("task wait", "Waits.Program.AnswersRequest"))
                        self.assertGreaterEqual(site["workers"], 0.8 * pool["workers"])
                        self.assertGreater(pool["came"], 0)


if __name__ == "__main__":
    harness.main()
