#!/usr/bin/env python3
"""--enable-perf-map: JIT code of processes that were started with nothing gets names, and nothing of it stays behind."""
import os
import re
import shutil
import tempfile
import time

import diagnostics
import harness
import runtimes

VERSIONS = runtimes.selected()


class PerfMapLeaseTest(harness.LiveTest):
    NEEDS = ("dotnet", "unshare")

    def setUp(self):
        self.leases = tempfile.mkdtemp(prefix="clrsampler-leases-")
        self.addCleanup(shutil.rmtree, self.leases, True)

    def options(self, target, *more):
        return ("--pid", str(target.host_pid), "--frequency", "499", "--enable-perf-map", "--lease-directory", self.leases, *more)

    def record(self, target, cpu_seconds, *more):
        """Until the target has used so much CPU time since its map is on."""
        agent = harness.Agent(self.options(target, *more))
        agent.wait_until_sampling()
        deadline = time.monotonic() + 60
        while not diagnostics.open_maps(target.host_pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        target.use_cpu(cpu_seconds)
        agent.interrupt()
        return agent.finish(120)

    def check_nothing_left(self, target, result, directory="/tmp"):
        self.assertEqual(diagnostics.open_maps(target.host_pid), [], result)
        self.assertEqual(diagnostics.map_files(target.pid, f"/proc/{target.host_pid}/root{directory}"), [], result)
        self.assertEqual(os.listdir(self.leases), [], result)

    def jit_names(self, result):
        sources = result.stats["frames"]["by_source"]
        return sources["perf-map"]

    def test_jit_code_of_an_unprepared_process_is_named_and_nothing_is_left(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                self.need_runtime(version)
                with harness.workload(version, "mix", "--seconds", 300, "--threads", 2) as target:
                    time.sleep(1.2)  # a process of less than a second is left alone
                    result = self.record(target, 4)
                    profile = self.check_result(result, minimum_samples=300)
                    self.check_managed_named(result, minimum=0.95)
                    self.assertGreater(profile.with_frame(lambda f: f.startswith("Workload.Loops.")), 50, result)
                    self.assertGreater(self.jit_names(result), 200, result)
                    self.check_nothing_left(target, result)

    @harness.in_matrix
    def test_methods_compiled_afterwards_are_written_nowhere(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                self.need_runtime(version)
                with harness.workload(version, "jit", "--seconds", 300) as target:
                    time.sleep(1.2)
                    result = self.record(target, 1)
                    self.assertGreater(self.jit_names(result), 0, result)
                    target.use_cpu(1)  # some thousand methods
                    self.check_nothing_left(target, result)

    @harness.in_matrix
    def test_a_map_that_the_target_was_started_with_is_not_touched(self):
        with harness.workload(runtimes.INSTALLED, "jit", "--seconds", 300, perf_map=3) as target:
            time.sleep(1.2)
            (path,) = diagnostics.map_files(target.pid)
            before = os.stat(path)
            result = self.record(target, 1)
            after = os.stat(path)
            self.assertEqual((before.st_ino, before.st_dev), (after.st_ino, after.st_dev), result)
            self.assertGreater(after.st_size, before.st_size)  # a Disable and Enable would have cut it
            self.assertEqual(diagnostics.open_maps(target.pid), [path])
            target.use_cpu(1)
            self.assertGreater(os.stat(path).st_size, after.st_size)

    def test_a_map_that_another_tool_switched_on_is_not_touched(self):
        with harness.workload(runtimes.INSTALLED, "jit", "--seconds", 300) as target:
            time.sleep(1.2)
            diagnostics.enable(target.pid)
            (path,) = diagnostics.map_files(target.pid)
            with open(path, "rb") as f:
                first = f.read(200)
            result = self.record(target, 1)
            self.assertGreater(self.jit_names(result), 0, result)
            self.assertEqual(diagnostics.open_maps(target.pid), [path])
            with open(path, "rb") as f:
                self.assertEqual(f.read(200), first)

    def test_a_runtime_that_is_still_starting_is_left_alone(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                self.need_runtime(version)
                env = {"DOTNET_DefaultDiagnosticPortSuspend": "1"}
                with harness.workload(version, "mix", "--seconds", 3, ready=False, env=env) as target:
                    deadline = time.monotonic() + 60
                    while not diagnostics.sockets(target.pid) and time.monotonic() < deadline:
                        time.sleep(0.05)
                    time.sleep(1.2)
                    result = harness.record(*self.options(target, "--duration", "2s"))
                    self.assertEqual(diagnostics.map_files(target.pid), [], result)
                    self.check_account_text(result)
                    status, _ = diagnostics.call(target.pid, diagnostics.RESUME_RUNTIME)
                    self.assertEqual(status, 0)
                    target.truth()  # it was not harmed: it does its work and ends with 0

    @harness.in_matrix
    def test_a_map_beyond_the_cap_is_switched_off(self):
        with harness.workload(runtimes.INSTALLED, "jit", "--seconds", 300) as target:
            time.sleep(1.2)
            # So large that it is on for seconds, and is seen.
            agent = harness.Agent(self.options(target, "--duration", "10m", "--perf-map-cap", "1MiB"))
            try:
                deadline = time.monotonic() + 150
                seen = on = False
                while time.monotonic() < deadline and (on or not seen):
                    on = bool(diagnostics.open_maps(target.pid))
                    seen |= on
                    time.sleep(0.02)
                self.assertTrue(seen)
                self.assertFalse(on, "it stays on")
                self.assertIsNone(agent.process.poll(), "the run was over before the cap was reached")
                agent.interrupt()
            finally:
                result = agent.finish(120)
            self.assertRegex(result.err, "grew beyond 1048576 bytes")
            self.check_nothing_left(target, result)

    def test_in_a_container_with_a_long_tmpdir(self):
        # As long as a runtime can bind to. Seen from outside, through /proc/PID/root, it would not fit into an address.
        long = "/tmp/" + "d" * 48
        with harness.workload(runtimes.INSTALLED, "mix", "--seconds", 300, namespace=True) as target:
            time.sleep(1.2)
            result = self.record(target, 1.5)
            self.assertGreater(self.jit_names(result), 100, result)
            self.check_nothing_left(target, result)
        os.makedirs(long, exist_ok=True)
        self.addCleanup(shutil.rmtree, long, True)
        with harness.workload(runtimes.INSTALLED, "mix", "--seconds", 300, env={"TMPDIR": long}) as target:
            time.sleep(1.2)
            result = self.record(target, 1.5)
            self.assertGreater(self.jit_names(result), 100, result)
            self.check_nothing_left(target, result)

    def test_in_a_time_namespace(self):
        # The socket's name holds the start time as the process sees it.
        command, additions = runtimes.command(runtimes.INSTALLED, "mix", "--seconds", "300")
        with harness.Target(["unshare", "--time", "--boottime", "12345", "--fork", *command], env=additions) as target:
            target.host_pid = target._only_child(target.process.pid)
            time.sleep(1.2)
            result = self.record(target, 1.5)
            self.assertGreater(self.jit_names(result), 100, result)
            self.check_nothing_left(target, result)

    @harness.in_matrix
    def test_without_diagnostics_the_reason_is_said(self):
        with harness.workload(runtimes.INSTALLED, "mix", "--seconds", 300, env={"DOTNET_EnableDiagnostics": "0"}) as target:
            time.sleep(1.2)
            result = harness.record(*self.options(target, "--duration", "16s"))  # it looks for 8 s
            self.assertRegex(result.err, "no diagnostics socket")
            self.assertRegex(result.err, "DOTNET_EnableDiagnostics")

    def test_a_command_of_ours_is_named_once_it_is_up(self):
        command, additions = runtimes.command(runtimes.INSTALLED, "mix", "--seconds", "8")
        result = harness.record("--frequency", "499", "--enable-perf-map", "--lease-directory", self.leases, "--", *command, env=additions)
        self.check_result(result, minimum_samples=300)
        self.assertGreater(self.jit_names(result), 200, result)
        self.assertEqual(os.listdir(self.leases), [], result)
        # The process is gone, and with it the runtime that could be asked. The file is gone all the same.
        (process,) = [p for p in result.stats["processes"] if p["runtime"]]
        self.assertEqual(diagnostics.map_files(process["pid"]), [], result)

    def test_where_leases_can_not_be_kept_the_run_ends_with_a_hint(self):
        os.chmod(self.leases, 0o777)
        with harness.workload(runtimes.INSTALLED, "mix", "--seconds", 20) as target:
            result = harness.record(*self.options(target, "--duration", "1s"), output=False)
            self.assertEqual(result.status, 1, result)
            self.assertTrue(re.search("error: .*written by others\nhint: ", result.err), result.err)


if __name__ == "__main__":
    harness.main()
