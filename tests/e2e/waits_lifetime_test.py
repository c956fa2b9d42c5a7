#!/usr/bin/env python3
"""Running and waiting of all threads of a process, as `record --event wall` tells them, are the threads' lives: in twelve workloads, within
1 %. The judge looks at /proc every few milliseconds. It knows the birth of each thread by the kernel's clock and its end by its absence."""
import json
import os
import subprocess
import tempfile
import threading
import time

import harness
import runtimes

WORKLOADS = ("json", "regex", "linq", "async", "gc", "jit", "mix", "contend", "zoo", "compression", "service", "idle")
SECONDS = 4
LOOK_SECONDS = 0.005
TICK = 1 / os.sysconf("SC_CLK_TCK")  # of a thread's birth in /proc


class Lives:
    """Births and ends of a process's threads, by CLOCK_MONOTONIC (no machine here is ever suspended)."""

    def __init__(self, pid):
        self.folder = f"/proc/{pid}/task"
        self.lives = {}  # (tid, birth): last seen
        self.longest_look = 0.0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def look(self):
        now = time.monotonic()
        for tid in os.listdir(self.folder):
            try:
                with open(f"{self.folder}/{tid}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            self.lives[int(tid), int(fields[19]) * TICK] = now
        return now

    def watch(self):
        last = self.look()
        while not self.ended.wait(LOOK_SECONDS):
            now = self.look()
            self.longest_look = max(self.longest_look, now - last)
            last = now

    def stop(self):
        self.ended.set()
        self.thread.join()
        return self.look()

    def seconds(self, begin, end, last_look):
        """(of all lives between two times, by how much that may be wrong)"""
        sum_of, error = 0.0, 0.0
        for (_, birth), seen in self.lives.items():
            lasts = seen == last_look
            sum_of += max(0.0, (end if lasts else min(seen, end)) - max(birth, begin))
            error += (TICK if birth > begin else 0) + (0 if lasts else LOOK_SECONDS + self.longest_look)
        return sum_of, error


class LifetimeTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def test_running_and_waiting_are_the_lives_of_all_threads(self):
        for mode in WORKLOADS:
            with self.subTest(mode), harness.workload(runtimes.INSTALLED, mode, "--seconds", SECONDS + 20) as target, \
                    tempfile.TemporaryDirectory(prefix="lifetime-") as folder:
                time.sleep(1)
                out = os.path.join(folder, "wall.json")
                lives = Lives(target.host_pid)
                done = subprocess.run([harness.AGENT, "record", "--event", "wall", "--pid", str(target.host_pid), "-d", f"{SECONDS}s", "-o", out],
                                      capture_output=True, text=True, timeout=120)
                last_look = lives.stop()
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(out, encoding="utf-8") as file:
                    profile = json.load(file)
                told = sum(profile["samples"]["weight"]) / 1e6
                begin = profile["meta"]["start_monotonic_ns"] / 1e9
                real, error = lives.seconds(begin, begin + profile["meta"]["duration_ns"] / 1e9, last_look)
                print(f"  {mode}: {told:.3f} s told of {real:.3f} s in {len(lives.lives)} lives, ratio {told / real:.4f}, "
                      f"lives known to {error:.3f} s", flush=True)
                waits = profile["meta"]["account"]["waits"]
                self.assertEqual(waits["records_lost"], 0)
                self.assertLess(abs(told - real), 0.01 * real + error)


if __name__ == "__main__":
    harness.main()
