#!/usr/bin/env python3
"""`record --event off-cpu`, `--event wall`, `clrsampler wall` and `clrsampler locks` against a program that measures its own waits
(tests/apps/waits). thread_pool_live_test has the thread pool, lock_holders_live_test has who holds a lock."""
import collections
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import harness
import runtimes
from wait_sites import OWN_ERROR, SIGMAS, check_sites, kind_of
from waits_program import Program

VERSIONS = runtimes.PACKED_VERSIONS if runtimes.MATRIX else (runtimes.PACKED_VERSIONS[0], runtimes.PACKED_VERSIONS[-1])
NEWEST = runtimes.PACKED_VERSIONS[-1]
SECONDS = 3


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

    def test_waits_have_their_kind_their_time_and_their_waker(self):
        for version in VERSIONS:
            with self.subTest(version), Program(version) as program:
                truth, stacks, stats = self.record(program, "off-cpu", "--wakers", during=lambda: program.wait(SECONDS))
                print(f"{version}: {stats['waits']}", flush=True)
                check_sites(self, truth, stacks, stats["waits"])
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

    def test_the_runtimes_thread_for_signals_is_idle(self):
        for version in VERSIONS:
            with self.subTest(version), Program(version) as program:
                deadline = time.monotonic() + 60
                while ".NET SigHandler" not in program.thread_names():  # the console has it made
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.05)
                _, stacks, _ = self.record(program, "off-cpu", during=lambda: time.sleep(1))
                pipes = [(stack, count) for stack, count in stacks if "[pipe]" in stack]
                # The main thread reads its standard input.
                self.assertGreater(sum(count for stack, count in pipes if any("Console.ReadLine" in frame for frame in stack)), 900_000)
                self.assertFalse([stack for stack, _ in pipes if not any("Console.ReadLine" in frame for frame in stack)])

    def test_a_saved_stream_gives_the_same_profile(self):
        with Program(NEWEST) as program:
            stream = self.path("run.stream")
            self.record(program, "off-cpu", "--wakers", "--save-stream", stream, during=lambda: program.wait(1))
        subprocess.run([harness.AGENT, "replay", stream, "-q", "-o", self.path("again.folded")], check=True)
        with open(self.path("out.folded"), "rb") as first, open(self.path("again.folded"), "rb") as second:
            self.assertEqual(sorted(first), sorted(second))
        began = time.time_ns()
        subprocess.run([harness.AGENT, "replay", stream, "-q", "-o", self.path("again.json")], check=True)
        with open(self.path("again.json")) as f:
            played = json.load(f)["meta"]
        self.assertEqual(played["host"], os.uname().nodename)
        self.assertGreater(began - played["start_unix_ns"], 1_000_000_000, "when it was recorded, not when it is played")
        self.assertLess(began - played["start_unix_ns"], 120_000_000_000)

    def test_time_before_an_exec_counts_once(self):
        program = "import os, time; time.sleep(1); os.execvp('sleep', ['sleep', '1'])"
        subprocess.run([harness.AGENT, "record", "--event", "wall", "-q", "-o", self.path("out.folded"), "--stats", self.path("stats.json"),
                        "--", sys.executable, "-c", program], check=True)
        told = sum(count for _, count in self.stacks("out.folded")) / 1e6
        seconds = self.stats()["duration_seconds"]
        print(f"  {told:.3f} s of one thread in {seconds:.3f} s", flush=True)
        self.assertGreater(told, 2)
        self.assertLess(told, 1.02 * seconds)

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

    def burners(self, program):
        """Nanoseconds that the threads called "burner" had a CPU so far, those that they waited for one by the kernel's own count, and how
        many there are. A wait counts when it has ended."""
        times = []
        for tid in os.listdir(f"/proc/{program.pid}/task"):
            folder = f"/proc/{program.pid}/task/{tid}"
            with open(f"{folder}/comm", encoding="utf-8") as comm, open(f"{folder}/schedstat", encoding="utf-8") as schedstat:
                if comm.read() == "burner\n":
                    times.append([int(field) for field in schedstat.read().split()[:2]])
        return sum(had for had, _ in times), sum(waited for _, waited in times), len(times)

    def test_threads_that_want_a_cpu_have_waited_as_long_as_the_kernel_says(self):
        """Twice as many threads as CPUs compute. Between two readings of schedstat they have a CPU or wait for one. The recording begins
        before and ends behind these, and each thread cannot wait longer than the rest of it."""
        count = 2 * os.cpu_count()
        for version in VERSIONS:
            with self.subTest(version), Program(version, str(count)) as program:
                def compute():
                    began = time.monotonic()
                    had, waited, _ = self.burners(program)
                    time.sleep(SECONDS)
                    had_then, waited_then, threads = self.burners(program)
                    return had_then - had, waited_then - waited, threads, time.monotonic() - began

                (had, real, threads, seconds), stacks, stats = self.record(program, "wall", during=compute)
                self.assertEqual(threads, count)
                kinds = collections.Counter()
                for stack, microseconds in stacks:
                    kind, mark = kind_of(stack)
                    if any("Waits.Program" in frame and "Main" in frame and "<lambda" in frame for frame in stack[:mark]):
                        kinds[kind] += microseconds
                waits = stats["waits"]
                passed = waits["passed_over"] / max(1, waits["passed_over"] + waits["kept"])
                error = OWN_ERROR + SIGMAS * math.sqrt(passed / (1 - passed) / max(1, waits["kept"]))
                told, rest = kinds["runnable"] * 1000, (stats["duration_seconds"] - seconds) * threads * 1e9
                # Waits below the threshold have no stack.
                short = sum(count for stack, count in stacks if stack[-1].startswith("[waits shorter")) * 1000
                most = seconds * threads * 1e9 - had
                print(f"  {version}: told {told / 1e9:.3f} s, {real / 1e9:.3f} s by schedstat, {most / 1e9:.3f} s without a CPU, "
                      f"{rest / 1e9:.3f} s around them, "
                      f"{short / 1e9:.3f} s in short waits ({error:.3f} allowed), {dict(kinds)}", flush=True)
                self.assertGreater(real, 0.2 * threads * seconds * 1e9)
                self.assertGreater(told + short, (1 - error) * real)
                self.assertLess(told, (1 + error) * (most + rest))
                # They wait for nothing else.
                self.assertLess(sum(kinds.values()) - kinds["runnable"] - kinds["running"], 0.02 * sum(kinds.values()))

    def test_memory_that_has_to_be_read_from_a_disk_is_a_page_fault(self):
        pages = 256  # that the program touches, 64 pages apart
        path = self.path("pages")
        with open(path, "wb") as file:
            file.write(os.urandom(1 << 18) * pages)
            file.flush()
            os.fsync(file.fileno())
        for version in VERSIONS:
            with self.subTest(version), Program(version, "faults", path) as program:
                def touch():
                    with open(path, "rb") as file:
                        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                    faults = self.major_faults(program)
                    program.process.stdin.write("\n")
                    program.process.stdin.flush()
                    return int(program.process.stdout.readline()), self.major_faults(program) - faults

                (real, faults), stacks, _ = self.record(program, "off-cpu", "--min-wait", "10us", during=touch)
                if faults < pages / 2:
                    self.skipTest(f"this file system reads {faults} of {pages} pages from a disk")
                kinds = collections.Counter()
                for stack, microseconds in stacks:
                    kind, mark = kind_of(stack)
                    if any("Waits.PageFaults.TouchesPages" in frame for frame in stack[:mark]):
                        kinds[kind] += microseconds
                told = sum(kinds.values())
                print(f"  {version}: {faults} faults, {told / 1e6:.3f} s told of {real / 1e9:.3f} s, {dict(kinds)}", flush=True)
                # Other short waits take the places of some, so the sum is no measure. Their kind is.
                self.assertGreater(kinds["page fault"], 0)
                self.assertGreaterEqual(kinds["page fault"], 0.98 * (told - kinds["runnable"]))

    def test_threads_that_the_runtime_stops_are_suspended(self):
        for version in VERSIONS:
            with self.subTest(version), Program(version, "suspensions") as program:
                paused, stacks, _ = self.record(program, "off-cpu", during=lambda: program.wait(20))
                kinds, of_gate = collections.Counter(), collections.Counter()
                for stack, microseconds in stacks:
                    kind, mark = kind_of(stack)
                    if "Waits.Suspensions.Computes_[j]" in stack[:mark]:
                        kinds[kind] += microseconds
                    if "Waits.Suspensions.WantsGate_[j]" in stack[:mark]:
                        of_gate[kind] += microseconds
                print(f"  {version}: {dict(kinds)} in pauses of {paused / 1e9:.3f} s, {dict(of_gate)} for the monitor", flush=True)
                # The thread runs on for a moment, until it is stopped, and waits for a CPU when the pause is over.
                self.assertLess(kinds["suspended"], 1.01 * paused / 1000)
                self.assertGreater(kinds["suspended"] + kinds["runnable"], 0.9 * paused / 1000)
                self.assertLessEqual(sum(kinds.values()) - kinds["runnable"], 1.01 * kinds["suspended"], kinds)
                # A wait for a monitor goes on before, in and behind the pauses. Before .NET 10 no method says what it is for.
                self.assertEqual(of_gate["suspended"], 0)
                self.assertGreater(of_gate["futex" if version.startswith("8.") else "monitor"], 0)

    def major_faults(self, program):
        with open(f"/proc/{program.pid}/stat", encoding="utf-8") as file:
            return int(file.read().rpartition(")")[2].split()[9])


if __name__ == "__main__":
    harness.main()
