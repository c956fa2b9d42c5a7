#!/usr/bin/env python3
"""A file system that answers nothing stops neither the sampling of the others nor the end of the agent."""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import harness
import hanging_files
import service

FREQUENCY = 97
SECONDS = 6
END_SECONDS = 2  # beyond twice what the same takes where nothing hangs: a machine may be slow or have other work
ENOUGH = 0.99
RESCUE_SECONDS = 60


class HungFilesTest(harness.LiveTest):
    NEEDS = ("minijit",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not os.path.exists("/dev/fuse"):
            cls.unavailable("no /dev/fuse")
        # Under a name that programs of other tests on this host do not have.
        folder = tempfile.TemporaryDirectory(prefix="clrsampler-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.healthy = shutil.copy(harness.MINIJIT, os.path.join(folder.name, "healthyprogram"))
        os.chmod(folder.name, 0o755)

    @staticmethod
    def files(command=(), user=0):
        """With a program on it, under a name of its own."""
        return hanging_files.HangingFiles({"hungprogram": harness.MINIJIT}, command, user)

    @staticmethod
    def is_named(frames):
        return "middle" in [frame.rsplit("_[", 1)[0] for frame in frames]

    @classmethod
    def usual_end(cls):
        """Seconds that a recording takes to end beside a file system that answers."""
        if cls._usual_end is None:
            with cls.files() as files:
                _, cls._usual_end, _ = cls.record_beside(cls, files, "")
        return cls._usual_end

    _usual_end = None

    def check_end(self, ended, said):
        allowed = END_SECONDS + 2 * self.usual_end()
        print(f"    ended after {ended:.2f} s of {allowed:.2f}", flush=True)
        self.assertLessEqual(ended, allowed, f"it ended {ended:.1f} s after SIGTERM\n{said}")

    def record_beside(self, files, stall):
        """(result, seconds to its end, CPU seconds by pid, stolen seconds)"""
        with harness.Target([files.path("hungprogram"), "--seconds", "60"]) as hung, \
                harness.Target([self.healthy, "--seconds", "60"]) as healthy:
            files.stall(stall)
            steal = harness.steal_seconds()
            agent = harness.Agent(["--frequency", str(FREQUENCY)])
            # An agent that hangs can't be killed before.
            rescue = threading.Timer(RESCUE_SECONDS, files.abort)
            rescue.start()
            try:
                agent.wait_until_sampling(RESCUE_SECONDS)
                time.sleep(1)
                # Begins while the other one hangs: its files are opened then.
                with harness.Target([self.healthy, "--seconds", "60"]) as late:
                    begin = [target.cpu_ns() for target in (healthy, late)]
                    time.sleep(SECONDS - 1)
                    used = [(target.cpu_ns() - at) / 1e9 for target, at in zip((healthy, late), begin)]
                    pids = [healthy.host_pid, late.host_pid]
                    asked = time.monotonic()
                    agent.interrupt(signal.SIGTERM)
                    result = agent.finish(RESCUE_SECONDS)
                    ended = time.monotonic() - asked
            finally:
                rescue.cancel()
                files.abort()
            assert hung.host_pid is not None
        self._stolen = harness.steal_seconds() - steal
        return result, ended, dict(zip(pids, used))

    def check(self, result, ended, used):
        self.assertEqual(result.status, 0, result)
        samples = result.stats["samples"]
        self.assertLessEqual(sum(samples["lost"].values()), (1 - ENOUGH) * samples["taken"], result)
        stolen = self._stolen * FREQUENCY
        self.assertGreaterEqual(samples["taken"], ENOUGH * samples["expected"] - 5 - stolen, result)
        taken = {process["pid"]: process["samples"] for process in result.stats["processes"]}
        for pid, seconds in used.items():
            # The account above is exact. One process of a crowded machine has its share by chance: 5 sigma.
            true = seconds * FREQUENCY
            self.assertGreaterEqual(taken.get(pid, 0), ENOUGH * true - 5 * true ** 0.5 - stolen, f"process {pid}: {seconds} s\n{result}")
        healthy = [(frames, count) for frames, count in result.profile.stacks if frames[0].startswith("healthyprogram")]
        total = sum(count for _, count in healthy)
        named = sum(count for frames, count in healthy if self.is_named(frames))
        # Before its exec a process has its parent's name.
        self.assertGreaterEqual(total, 0.95 * sum(taken.get(pid, 0) for pid in used), result)
        # The start of a process is no method of it.
        self.assertGreaterEqual(named, ENOUGH * total - 5, f"{named} of {total} are named\n{result}")
        self.check_end(ended, result)

    def check_said(self, result):
        self.assertIn("files_hung", [notice["kind"] for notice in result.stats["notices"]], result)
        self.assertIn("does not answer", result.err)

    def test_commands_that_only_look_do_not_wait_either(self):
        """Commands about the process whose files hang and about the host that it is on."""
        folder = tempfile.mkdtemp(prefix="clrsampler-test-")
        self.addCleanup(shutil.rmtree, folder)
        output = os.path.join(folder, "x.json")
        with self.files() as files, harness.Target([files.path("hungprogram"), "--seconds", "120"]) as hung, \
                harness.Target([self.healthy, "--seconds", "120"]) as healthy:
            files.stall("ALL")
            rescue = threading.Timer(RESCUE_SECONDS, files.abort)
            rescue.start()
            try:
                of_hung = ["--pid", str(hung.host_pid)]
                for arguments in (["ps"], ["doctor"], ["doctor", *of_hung], ["doctor", "--pid", str(healthy.host_pid)], ["names", *of_hung, "1000"],
                                  ["stacks", *of_hung], ["stacks", "--pid", str(healthy.host_pid)], ["threadpool", *of_hung, "--duration", "1s"],
                                  ["report", *of_hung, "--duration", "1s"], ["record", *of_hung, "--event", "wall", "--duration", "1s", "--output", output]):
                    with self.subTest(" ".join(arguments)):
                        begin = time.monotonic()
                        done = subprocess.run([harness.AGENT, *arguments], capture_output=True, text=True, timeout=RESCUE_SECONDS + 30)
                        seconds = time.monotonic() - begin
                        print(f"    {' '.join(arguments[:1])}: {seconds:.2f} s, status {done.returncode}", flush=True)
                        self.assertTrue(rescue.is_alive(), f"it waited until the file system was gone\n{done.stderr}")
                        self.assertLess(seconds, RESCUE_SECONDS / 2)
                        self.assertIn(done.returncode, (0, 1), done.stderr)
                        if arguments == ["stacks", "--pid", str(healthy.host_pid)]:
                            self.assertIn("middle", done.stdout)
            finally:
                rescue.cancel()
                files.abort()

    def test_nothing_is_answered(self):
        with self.files() as files:
            result, ended, used = self.record_beside(files, "ALL")
        self.check(result, ended, used)
        self.check_said(result)

    def test_of_a_user(self):
        if not shutil.which(harness.AS_NOBODY[0]):
            self.unavailable(f"no `{harness.AS_NOBODY[0]}` on PATH")
        with self.files(harness.AS_NOBODY, harness.NOBODY) as files:
            result, ended, used = self.record_beside(files, "ALL")
        self.check(result, ended, used)
        self.check_said(result)

    def test_a_server_that_is_gone(self):
        """NFS: pages are in the cache, and attributes are asked for in vain."""
        with self.files() as files:
            result, ended, used = self.record_beside(files, "LOOKUP GETATTR")
        self.check(result, ended, used)
        self.check_said(result)

    def test_reads_hang(self):
        with self.files() as files:
            result, ended, used = self.record_beside(files, "READ")
        self.check(result, ended, used)

    def test_a_healthy_one_is_named(self):
        with self.files() as files, harness.Target([files.path("hungprogram"), "--seconds", "60"]) as target:
            result = harness.record("--pid", str(target.host_pid), "--frequency", str(FREQUENCY), "--duration", "3s")
        profile = self.check_result(result, minimum_samples=100)
        named = profile.with_frame(lambda frame: frame == "middle")
        self.assertGreaterEqual(named, ENOUGH * profile.total - 3, result)
        # A function of the program itself, out of the file.
        self.assertGreaterEqual(profile.with_frame(lambda frame: frame == "main"), 0.9 * profile.total, result)

    def test_serve_goes_on(self):
        with self.files() as files, harness.Target([files.path("hungprogram"), "--seconds", "60"]), \
                harness.Target([self.healthy, "--seconds", "60"]), contextlib.ExitStack() as stack:
            files.stall("ALL")
            rescue = threading.Timer(RESCUE_SECONDS, files.abort)
            rescue.start()
            try:
                serve = stack.enter_context(service.Service(window="1s"))
                serve.wait_for_windows(4, seconds=RESCUE_SECONDS)
                asked = time.monotonic()
                serve.process.send_signal(signal.SIGTERM)
                status = serve.process.wait(RESCUE_SECONDS)
                ended = time.monotonic() - asked
                said = serve.said()
                self.assertEqual(status, 0, said)
                self.assertTrue(rescue.is_alive(), "the file system did not hang all the time")
                # Nothing that is left holds the history or the address.
                serve.start()
                self.assertEqual(serve.stop(), 0, serve.said())
            finally:
                rescue.cancel()
                files.abort()
        self.check_end(ended, said)


if __name__ == "__main__":
    harness.main()
