#!/usr/bin/env python3
"""clrsampler serve --waits' word of waits, against a program that measures its own (tests/apps/waits): metric, history, profiles and
trigger, also after a restart."""
import collections
import json
import math
import os
import subprocess
import time

import harness
import runtimes
from pprof import pprof_tool
from serve_live_test import cpu_seconds
from service import Service
from waits_live_test import OWN_ERROR, SIGMAS, Program

NEWEST = runtimes.PACKED_VERSIONS[-1]
METRIC = "clrsampler_wait_seconds_total"
SECONDS = 12
# A service that stands still for longer than a window has looked at no thread for it.
LONG_WINDOW = "6s"


class ServeWaitsTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    @staticmethod
    def series(service, program):
        with open(f"/proc/{program.pid}/comm", encoding="utf-8") as file:
            return f"{file.read().strip()}-{program.pid}"

    def by_kind(self, service, program):
        """Seconds by kind, as the metric has them."""
        process, metrics, kinds = self.series(service, program), service.metrics(), {}
        for kind in ("monitor", "task wait", "semaphore", "event", "sleep", "socket", "idle", "runnable", "short", "not told", "other", "futex",
                     "suspended", "poll", "lock", "pipe", "file", "page fault", "child process"):
            if seconds := service.sum(METRIC, metrics, process=process, kind=kind):
                kinds[kind] = seconds
        return kinds

    @staticmethod
    def results(service):
        metrics = service.metrics()
        return {result: service.sum("clrsampler_waits_total", metrics, result=result)
                for result in ("told", "short", "passed_over", "lost", "without_stack")}

    def wait_until_counted(self, service, program):
        end = time.monotonic() + 90
        while not self.by_kind(service, program):
            service.wait_for_windows(1)
            self.assertLess(time.monotonic(), end, f"nothing is counted\n{service.said()}")

    @staticmethod
    def stacks(service, **parameters):
        """[(stack, nanoseconds)] without the root."""
        status, body = service.get("/api/profile", view="off-cpu", format="folded", **parameters)
        if status != 200:
            raise AssertionError(f"{status} {body[:500]}")
        lines = (line.rpartition(" ") for line in body.decode().splitlines())
        return [(stack.split(";")[1:], int(number)) for stack, _, number in lines]

    def of_windows(self, service, begin, program, path=None):
        """The stacks, or an answer, of the windows that have begun since, and how many seconds these are together."""
        while True:
            until = service.json("/api/status")["newest"] / 1e3
            seconds = service.json("/api/health", **{"from": begin, "to": until})["covered_ms"] / 1e3
            parameters = {"from": begin, "to": until, "pid": program.pid}
            given = service.json(path, **parameters) if path else self.stacks(service, **parameters)
            if service.json("/api/status")["newest"] / 1e3 == until:
                return given, seconds

    def kind_and_mark(self, stack):
        for index, frame in enumerate(stack):
            if frame.startswith("[") and not frame.startswith("[woken") and (index + 1 == len(stack) or stack[index + 1].startswith("[woken")):
                return frame[1:-1], index
        return None, len(stack)

    def test_metric_history_and_profile_agree_with_what_the_program_measured(self):
        with Service("--waits") as service, Program(NEWEST) as program:
            self.wait_until_counted(service, program)
            service.wait_for_windows(1)
            before, results_before = self.by_kind(service, program), self.results(service)
            begin, cpu = time.time(), cpu_seconds(service.process.pid)
            truth = program.wait(SECONDS)
            end = time.time()
            share = (cpu_seconds(service.process.pid) - cpu) / (end - begin)
            service.wait_for_windows(2)  # that of its end, and one more
            after = self.by_kind(service, program)
            told = {kind: after[kind] - before.get(kind, 0) for kind in after}
            results = {key: count - results_before[key] for key, count in self.results(service).items()}
            print(f"    {({kind: round(seconds, 2) for kind, seconds in told.items()})}\n    {results}; the agent takes {100 * share:.1f} % of a CPU",
                  flush=True)
            self.assertEqual(results["lost"], 0)

            # Each kind of this program's sites, by a sum of some hundred waits of which a part was passed over.
            passed = results["passed_over"] / max(1, results["passed_over"] + results["told"])
            sites = collections.defaultdict(lambda: [0, 0])
            for site in truth:
                sites[site["kind"]][0] += site["ns"] / 1e9
                sites[site["kind"]][1] += site["waits"]
            for kind in ("monitor", "task wait", "semaphore", "event", "socket"):
                seconds, waits = sites[kind]
                error = OWN_ERROR + SIGMAS * math.sqrt(passed / (1 - passed) / waits)
                ratio = told.get(kind, 0) / seconds
                print(f"    {kind}: {ratio:.3f} of {seconds:.2f} s ({error:.3f} allowed)", flush=True)
                self.assertLess(ratio, 1.1 + error)
                self.assertGreater(ratio, 0.8 - error)

            def of_history(until):
                parameters = {"from": begin - 60, "to": until, "pid": program.pid}
                timeline = service.json("/api/timeline", **parameters)
                states = {state["state"]: sum(state["ms"]) / 1e3 for state in timeline["states"]}
                return self.stacks(service, **parameters), states, sum(sum(series["wait_ms"]) for series in timeline["series"]) / 1e3

            def by_kind_of(stacks):
                kinds = collections.Counter()
                for stack, nanoseconds in stacks:
                    kind, _ = self.kind_and_mark(stack)
                    kinds["short" if kind.startswith("waits shorter") else "not told" if kind == "waits not told" else kind] += nanoseconds / 1e9
                return kinds

            # A window counts in the metric before it is in the history. So they agree between two windows, and are asked until they do.
            for _ in range(40):
                after = self.by_kind(service, program)
                stacks, states, waited = of_history(time.time())
                kinds = by_kind_of(stacks)
                if all(abs(after.get(kind, 0) - seconds) < 1e-3 for kind, seconds in kinds.items()):
                    break
                time.sleep(0.2)
            self.assertGreater(states["running"], 0)
            self.assertEqual(set(kinds), set(states) - {"running"})
            for kind, seconds in kinds.items():
                self.assertAlmostEqual(states[kind], seconds, delta=1e-3, msg=kind)
                self.assertAlmostEqual(after[kind], seconds, delta=1e-3, msg=kind)
            self.assertAlmostEqual(waited, sum(kinds.values()), delta=1e-3)

            wakers = collections.Counter()
            for stack, nanoseconds in stacks:
                kind, mark = self.kind_and_mark(stack)
                if kind == "monitor" and "Waits.Program.EntersFirst_[j]" in stack:
                    wakers[stack[mark + 1] if mark + 1 < len(stack) else ""] += nanoseconds
            self.assertEqual(set(wakers) - {""}, {"[woken by thread owner two]"}, wakers)
            self.assertGreater(wakers["[woken by thread owner two]"], 0.9 * sum(wakers.values()), wakers)
            page = service.json("/api/profile", view="off-cpu", format="page", **{"from": begin, "pid": program.pid})
            self.assertEqual(page["version"], 1)
            # Windows up to the newest one are all written when one more is.
            until = service.json("/api/status")["newest"] / 1e3
            service.wait_for_windows(1)
            kept = of_history(until)
            self.assertEqual(service.stop(), 0)
            service.start()
            service.wait_for_windows(1)
            self.assertEqual(of_history(until), kept)

    def test_running_and_waiting_are_the_life_of_all_threads_in_each_window(self):
        with Service("--waits", window=LONG_WINDOW) as service, Program(NEWEST) as program:
            self.wait_until_counted(service, program)
            time.sleep(2)
            begin = time.time()
            before = program.threads()
            service.wait_for_windows(3)
            after = program.threads()
            states, seconds = self.of_windows(service, begin, program, "/api/timeline")
            life = sum(sum(state["ms"]) for state in states["states"]) / 1e3
            print(f"    {life:.3f} s of {before} to {after} threads in {seconds:.3f} s", flush=True)
            self.assertGreater(life, 0.98 * min(before, after) * seconds)
            self.assertLess(life, 1.02 * max(before, after) * seconds)

    @harness.in_matrix
    def test_a_thread_that_waits_all_the_time_is_in_each_window_with_its_stack(self):
        with Service("--waits", window=LONG_WINDOW) as service, Program(NEWEST) as program:
            self.wait_until_counted(service, program)
            begin = time.time()
            service.wait_for_windows(3)
            stacks, seconds = self.of_windows(service, begin, program)
            reads = sum(nanoseconds for stack, nanoseconds in stacks if any("Console.ReadLine" in frame for frame in stack))
            print(f"    {reads / 1e9:.3f} s of {seconds:.3f} s", flush=True)
            self.assertGreater(reads / 1e9, 0.99 * seconds)
            self.assertLess(reads / 1e9, 1.01 * seconds)

    @harness.in_matrix
    def test_a_trigger_fires_once(self):
        with Service("--waits", "--trigger", "wait:monitor>50%", "--trigger", "wait:page-fault>5000%") as service, Program(NEWEST) as program:
            self.wait_until_counted(service, program)
            program.wait(8)
            end = time.monotonic() + 120  # thirty seconds behind the event belong to it
            while not (recordings := service.json("/api/recordings")["recordings"]):
                self.assertLess(time.monotonic(), end, service.said())
                time.sleep(1)
            self.assertEqual([(one["trigger"], one["pid"]) for one in recordings], [("wait:monitor>50%", program.pid)])
            self.assertRegex(recordings[0]["value"], r"^\d+\.\d threads waited \(monitor\)$")
            with open(os.path.join(service.folder, "recordings", f"{recordings[0]['id']}.info.json"), encoding="utf-8") as file:
                waits = [row for row in json.load(file)["waits"] if row["pid"] == program.pid and row["kind"] == "monitor"]
            self.assertEqual({row["method"] for row in waits if row["ns"] > 1e9}, {"Waits.Program.EntersFirst", "Waits.Program.EntersSecond"})
            self.assertIn("woken by thread owner two", {row.get("waker") for row in waits})

    @harness.in_matrix
    def test_go_tool_pprof_asks_for_the_next_seconds(self):
        pprof = pprof_tool()
        with Service("--waits") as service, Program(NEWEST) as program:
            self.wait_until_counted(service, program)
            program.process.stdin.write("6\n")
            program.process.stdin.flush()
            url = f"http://pprof:{service.token}@{service.address[0]}:{service.address[1]}/debug/pprof/off-cpu?seconds=4&pid={program.pid}"
            done = subprocess.run([pprof, "-top", "-cum", "-nodecount=200", "-timeout=60", url], capture_output=True, text=True, timeout=120,
                                  env={**os.environ, "PPROF_TMPDIR": service.folder}, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("off_cpu", done.stdout)
            self.assertRegex(done.stdout, r"Waits\.Program\.EntersFirst")
            self.assertRegex(done.stdout, r"\[monitor\]")
            program.process.stdout.readline()

    def test_it_is_left_out_where_nobody_asks(self):
        with Service() as service, Program(NEWEST) as program:
            service.wait_for_windows(2)
            program.wait(2)
            service.wait_for_windows(2)
            self.assertEqual(service.sum(METRIC), 0)
            self.assertEqual(service.json("/api/timeline")["states"], [])
        done = subprocess.run([harness.AGENT, "serve", "--trigger", "wait:monitor>50%"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("hint: give --waits, or leave out the trigger", done.stderr)


if __name__ == "__main__":
    harness.main()
