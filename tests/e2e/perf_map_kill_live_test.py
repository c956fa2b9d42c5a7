#!/usr/bin/env python3
"""kill -9 of the agent at random moments: no perf map stays on, no file is left, and the target's own map still is.

CLRSAMPLER_LEASE_KILLS sets how many moments at which maps are on (50); other moments come on top. CLRSAMPLER_LEASE_SEED repeats a run.
"""
import contextlib
import glob
import os
import random
import shutil
import signal
import tempfile
import time

import diagnostics
import harness
import runtimes

KILLS = int(os.environ.get("CLRSAMPLER_LEASE_KILLS", "50"))
SEED = int(os.environ.get("CLRSAMPLER_LEASE_SEED", random.SystemRandom().randrange(1 << 30)))


def guards(directory):
    """Pids of guard processes that look after this directory."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(path, "rb") as f:
            words = f.read().split(b"\0")
            if words[1:3] == [b"lease-guard", directory.encode()]:
                found.append(int(path.split("/")[2]))
    return found


class KillTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def setUp(self):
        self.leases = tempfile.mkdtemp(prefix="clrsampler-leases-")
        self.addCleanup(shutil.rmtree, self.leases, True)
        self.random = random.Random(SEED)
        print(f"seed {SEED}", flush=True)

    def start_targets(self, stack):
        plain = []
        for version in runtimes.selected():
            self.need_runtime(version)
            plain.append(stack.enter_context(harness.workload(version, "idle", "--seconds", 1000)))
        own = stack.enter_context(harness.workload(runtimes.INSTALLED, "idle", "--seconds", 1000, perf_map=3))
        other = stack.enter_context(harness.workload(runtimes.INSTALLED, "idle", "--seconds", 1000))
        time.sleep(1.2)
        diagnostics.enable(other.pid)
        return plain, [own, other]

    def agent(self, targets, *more):
        pids = ",".join(str(t.host_pid) for t in targets)
        return harness.Agent(("--pid", pids, "--enable-perf-map", "--lease-directory", self.leases, *more), output=False)

    def wait_until_clean(self, plain, seconds):
        """The files that are still there after so many seconds; empty: all is undone."""
        deadline = time.monotonic() + seconds
        while True:
            left = os.listdir(self.leases)
            for target in plain:
                left += diagnostics.open_maps(target.pid) + diagnostics.map_files(target.pid)
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.01)

    def state_of(self, others):
        return [(diagnostics.open_maps(t.pid), [(path, os.stat(path).st_ino, os.stat(path).st_size) for path in diagnostics.map_files(t.pid)])
                for t in others]

    # Most of a run's first second goes into loading BPF, so moments anywhere in it are the fewest; others are around the requests, and
    # while maps are on.
    def wait_for_moment(self, round_number, plain):
        deadline = time.monotonic() + 90
        kind = round_number % 5
        if kind == 0:
            time.sleep(self.random.uniform(0, 2.5))
            return
        while not os.listdir(self.leases) and time.monotonic() < deadline:
            time.sleep(0.0005)
        if kind == 1:
            time.sleep(self.random.choice([0, self.random.uniform(0, 0.005), self.random.uniform(0, 0.05)]))
            return
        while not any(diagnostics.open_maps(t.pid) for t in plain) and time.monotonic() < deadline:
            time.sleep(0.0005)
        time.sleep(self.random.choice([0, self.random.uniform(0, 0.05), self.random.uniform(0, 1)]))

    def test_kill_at_random_moments(self):
        with contextlib.ExitStack() as stack:
            plain, others = self.start_targets(stack)
            before = self.state_of(others)
            self.assertTrue(all(open_maps and files for open_maps, files in before), before)
            killed_while_on = killed_while_leased = slowest = 0
            round_number = -1
            while killed_while_on < KILLS:
                round_number += 1
                self.assertLess(round_number, 4 * KILLS, "the moments missed the time in which maps are on")
                agent = self.agent(plain + others)
                self.wait_for_moment(round_number, plain)
                on = sum(bool(diagnostics.open_maps(t.pid)) for t in plain)
                leased = len(os.listdir(self.leases))
                agent.process.kill()
                killed = time.monotonic()
                agent.process.wait()
                left = self.wait_until_clean(plain, 30)
                slowest = max(slowest, time.monotonic() - killed)
                agent.finish(1)
                time.sleep(0.1)  # a request that was under way would show by now
                left += self.wait_until_clean(plain, 0)
                self.assertEqual(left, [], f"moment {round_number}, {on} on and {leased} leased when killed, guards {guards(self.leases)}")
                self.assertEqual(self.state_of(others), before, f"moment {round_number}: the map of another was touched")
                self.assertTrue(all(t.process.poll() is None for t in plain + others), "a target died")
                killed_while_on += bool(on)
                killed_while_leased += bool(leased and not on)
            print(f"{round_number + 1} moments, {killed_while_on} of them with maps on, {killed_while_leased} just before; "
                  f"clean after at most {slowest:.2f} s", flush=True)
            deadline = time.monotonic() + 90
            while guards(self.leases) and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertEqual(guards(self.leases), [])

    def leave_behind(self, plain):
        """Kills an agent and its guard while the maps of all `plain` are on."""
        agent = self.agent(plain)
        deadline = time.monotonic() + 90
        while not all(diagnostics.open_maps(t.pid) for t in plain) and time.monotonic() < deadline:
            time.sleep(0.01)
        for pid in guards(self.leases):
            os.kill(pid, signal.SIGKILL)
        agent.process.kill()
        agent.process.wait()
        agent.finish(1)
        self.assertTrue(all(diagnostics.open_maps(t.pid) for t in plain))

    def test_without_its_guard_the_next_run_repairs(self):
        with contextlib.ExitStack() as stack:
            plain, others = self.start_targets(stack)
            before = self.state_of(others)
            self.leave_behind(plain)
            # One of them exits meanwhile: nobody can be asked any more, its file has to go all the same.
            gone = plain.pop(0)
            gone.kill()
            gone.process.wait()
            self.assertNotEqual(diagnostics.map_files(gone.pid), [])
            # Any run repairs, not only one that switches maps on itself.
            result = harness.record("--pid", str(others[0].pid), "--duration", "100ms", "--lease-directory", self.leases)
            self.assertRegex(result.err, f"{len(plain) + 1} perf maps that a killed run had left on")
            self.assertEqual(self.wait_until_clean(plain, 0), [])
            self.assertEqual(diagnostics.map_files(gone.pid), [])
            self.assertEqual(self.state_of(others), before)

    def test_a_stopped_target_is_repaired_when_it_goes_on(self):
        with contextlib.ExitStack() as stack:
            (target,) = [stack.enter_context(harness.workload(runtimes.INSTALLED, "idle", "--seconds", 1000))]
            time.sleep(1.2)
            agent = self.agent([target])
            deadline = time.monotonic() + 90
            while not diagnostics.open_maps(target.pid) and time.monotonic() < deadline:
                time.sleep(0.01)
            os.kill(target.pid, signal.SIGSTOP)
            try:
                agent.process.kill()
                agent.process.wait()
                time.sleep(1)
                self.assertNotEqual(os.listdir(self.leases), [])
            finally:
                os.kill(target.pid, signal.SIGCONT)
            agent.finish(1)
            self.assertEqual(self.wait_until_clean([target], 30), [])


if __name__ == "__main__":
    harness.main()
