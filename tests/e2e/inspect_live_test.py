#!/usr/bin/env python3
"""`clrsampler ps` and `clrsampler doctor` on real runtimes: each version, each form of deployment, namespaces, other users."""
import glob
import json
import os
import shutil
import subprocess
import tempfile
import time

import forms
import harness
import runtimes
from control_group import ControlGroup


def run(*arguments, prefix=(), agent=None, timeout=150):
    return subprocess.run([*prefix, agent or harness.AGENT, *arguments], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL)


def listed(pid):
    """The row of ps --json for a process."""
    done = run("ps", "--json")
    assert done.returncode == 0, done
    rows = [row for row in json.loads(done.stdout)["processes"] if row["pid"] == pid]
    assert len(rows) == 1, f"{len(rows)} rows for process {pid}: {done.stdout}"
    return rows[0]


def doctor(pid):
    done = run("doctor", "--pid", str(pid), "--json")
    report = json.loads(done.stdout)
    assert report["profiling_will_work"] == (done.returncode == 0), done
    (process,) = report["processes"]
    return done.returncode, report["host"], process["findings"]


def lines(findings, check):
    return [finding for finding in findings if finding["check"] == check]


class VersionsTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def test_each_version_is_named(self):
        for version in (*runtimes.PACKED_VERSIONS, runtimes.INSTALLED):
            with self.subTest(version=version):
                self.need_runtime(version)
                with harness.workload(version, "idle", "--seconds", 120) as target:
                    row = listed(target.host_pid)
                    self.assertEqual(row["runtime"], runtimes.number(version))
                    self.assertEqual(row["form"], "framework-dependent")
                    self.assertEqual(row["libc"], "glibc")
                    self.assertEqual(row["gc"], "workstation")
                    self.assertIs(row["composite"], False)
                    self.assertEqual(row["symbol_sources"], ["memory", "r2r"])
                    self.assertEqual(row["profiling"], "full")
                    status, host, findings = doctor(target.host_pid)
                    self.assertEqual(status, 0, findings)
                    self.assertIn(runtimes.number(version), lines(findings, "runtime")[0]["what"])
                    (socket,) = lines(findings, "diagnostics_socket")
                    self.assertEqual(socket["level"], "pass", socket)
                    self.assertTrue(glob.glob(socket["what"].split(": ")[1]), socket)
                    jitdump_defect = [d for d in lines(findings, "runtime_defect") if "jitdump" in d["what"]]
                    self.assertEqual(any("#113943" in d["what"] for d in jitdump_defect), runtimes.jitdump_is_broken(version))

    def test_collectors(self):
        for env, gc, standalone in (({"DOTNET_gcServer": "1"}, "server", ""), ({"DOTNET_GCName": "libclrgc.so"}, "workstation", "libclrgc.so"),
                                    ({"DOTNET_GCName": "libclrgc.so", "DOTNET_gcServer": "1"}, "server", "libclrgc.so")):
            with self.subTest(env=env), harness.workload("9.0.19", "idle", "--seconds", 120, env=env) as target:
                row = listed(target.host_pid)
                self.assertEqual(row["gc"], gc)
                self.assertEqual(os.path.basename(row["standalone_gc"]), standalone)

    def test_files_of_the_runtime_are_sources_while_they_are_written(self):
        for version in ("8.0.30", runtimes.INSTALLED):
            with self.subTest(version=version), harness.workload(version, "idle", "--seconds", 120, perf_map=1) as target:
                sources = listed(target.host_pid)["symbol_sources"]
                self.assertIn("perf-map", sources)
                # A jitdump that its runtime has given up names nothing that comes.
                self.assertEqual("jitdump" in sources, not runtimes.jitdump_is_broken(version))
                _, _, findings = doctor(target.host_pid)
                warned = [d for d in lines(findings, "runtime_defect") if d["level"] == "warn" and "jitdumps" in d["what"]]
                self.assertEqual(len(warned), 1 if runtimes.jitdump_is_broken(version) else 0, findings)

    def test_diagnostics_switched_off(self):
        with harness.workload("10.0.14", "idle", "--seconds", 120, env={"DOTNET_EnableDiagnostics": "0"}) as target:
            self.assertEqual(listed(target.host_pid)["profiling"], "full")
            status, _, findings = doctor(target.host_pid)
            self.assertEqual(status, 0)
            (socket,) = lines(findings, "diagnostics_socket")
            self.assertEqual(socket["level"], "warn")
            self.assertIn("DOTNET_EnableDiagnostics=0", socket["what"])

    def test_temporary_directory_elsewhere(self):
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            with harness.workload("9.0.19", "idle", "--seconds", 120, env={"TMPDIR": folder + "/"}) as target:
                _, _, findings = doctor(target.host_pid)
                (socket,) = lines(findings, "diagnostics_socket")
                self.assertEqual(socket["level"], "pass", socket)
                self.assertIn(folder + "/dotnet-diagnostic-", socket["what"])

    def test_what_is_attached(self):
        with harness.workload("10.0.14", "idle", "--seconds", 120, env={"CORECLR_ENABLE_PROFILING": "1", "CORECLR_PROFILER": "{00000000-0000-0000-0000-000000000001}",
                                                      "CORECLR_PROFILER_PATH": "/no/profiler.so"}) as target:
            _, _, findings = doctor(target.host_pid)
            (profiler,) = lines(findings, "profiler")
            self.assertIn("/no/profiler.so", profiler["what"])
            strace = shutil.which("strace")
            if not strace:
                return
            tracer = subprocess.Popen([strace, "-f", "-p", str(target.host_pid), "-o", "/dev/null"], stderr=subprocess.DEVNULL)
            try:
                deadline = time.monotonic() + 90
                while not lines(doctor(target.host_pid)[2], "tracer"):
                    self.assertLess(time.monotonic(), deadline, "the tracer was not seen")
                    time.sleep(0.1)
            finally:
                tracer.terminate()
                tracer.wait()


class FormsTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def check(self, form, expected, version, **more):
        try:
            program = forms.published(form, version)
        except runtimes.Missing as reason:
            self.unavailable(str(reason))
        with harness.Target([program, "60"]) as target:
            row = listed(target.host_pid)
            self.assertEqual(row["form"], expected)
            self.assertEqual(row["profiling"], "full")
            for key, value in more.items():
                self.assertEqual(row[key], value, key)
            status, _, findings = doctor(target.host_pid)
            self.assertEqual(status, 0, findings)
            return row

    def test_self_contained(self):
        for version in runtimes.PACKED_VERSIONS:
            with self.subTest(version=version):
                self.check("self-contained", "self-contained", version, runtime=version, composite=False, bundled=False)

    def test_single_file(self):
        for version in runtimes.PACKED_VERSIONS:
            with self.subTest(version=version):
                self.check("single-file", "single-file", version, runtime=version, bundled=True, compressed=False,
                           symbol_sources=["memory", "r2r"])

    def test_compressed_single_file(self):
        self.check("compressed", "single-file", "10.0.14", runtime="10.0.14", compressed=True, symbol_sources=["memory"])

    def test_composite(self):
        self.check("composite", "self-contained", "9.0.19", runtime="9.0.19", composite=True)

    def test_bundle_on_a_shared_runtime(self):
        self.check("bundle", "framework-dependent", runtimes.INSTALLED, bundled=True, runtime=runtimes.number(runtimes.INSTALLED))

    def test_native_aot(self):
        row = self.check("native-aot", "native-aot", "9.0.19", symbol_sources=["elf"])
        self.assertRegex(row["runtime"], r"^9\.0\.\d+$")
        # Without its debug file nothing names its code, and doctor says so with its status.
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            program = shutil.copy(forms.published("native-aot", "9.0.19"), folder)
            with harness.Target([program, "60"]) as target:
                self.assertEqual(listed(target.host_pid)["profiling"], "poor")
                status, _, findings = doctor(target.host_pid)
                self.assertEqual(status, 1)
                self.assertEqual(lines(findings, "names")[0]["level"], "fail")
                self.assertIn(".dbg", lines(findings, "names")[0]["fix"])


class SurroundingsTest(harness.LiveTest):
    NEEDS = ("dotnet", "unshare", "minijit")

    def test_namespaces(self):
        with harness.workload("10.0.14", "idle", "--seconds", 120, perf_map=3, namespace=True) as target:
            row = listed(target.host_pid)
            self.assertEqual(row["namespace_pid"], target.pid)
            self.assertNotEqual(row["namespace_pid"], row["pid"])
            self.assertIn("perf-map", row["symbol_sources"])
            _, _, findings = doctor(target.host_pid)
            (socket,) = lines(findings, "diagnostics_socket")
            self.assertEqual(socket["level"], "pass", socket)
            self.assertIn(f"/tmp/dotnet-diagnostic-{target.pid}-", socket["what"])

    def test_time_namespace(self):
        command, additions = runtimes.command("10.0.14", "idle", "--seconds", "120")
        with harness.Target(["unshare", "--time", "--boottime", "100000", "--monotonic", "100000", "--fork", *command], env=additions) as target:
            pid = target._only_child(target.process.pid)
            _, _, findings = doctor(pid)
            self.assertEqual(lines(findings, "diagnostics_socket")[0]["level"], "pass", findings)
            os.kill(pid, 9)

    def test_native_process(self):
        with harness.Target([harness.MINIJIT, "--seconds", "120"]) as target:
            status, _, findings = doctor(target.host_pid)
            self.assertEqual(status, 0)
            # No .NET in it; its images have unwind data.
            self.assertEqual([finding["level"] for finding in findings], ["warn", "pass"])

    def test_no_such_process(self):
        process = subprocess.Popen(["true"])
        process.wait()
        done = run("doctor", "--pid", str(process.pid))
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: no process", done.stderr)
        self.assertIn("hint: ", done.stderr)
        self.assertEqual(run("doctor", "--pid", "abc").returncode, 2)

    def test_another_user_gets_an_answer(self):
        prefix = harness.AS_NOBODY
        with self.agent_for_nobody() as agent, harness.workload("10.0.14", "idle", "--seconds", 120) as target:
            done = run("ps", "--json", agent=agent, prefix=prefix)
            self.assertEqual(done.returncode, 0, done)
            (row,) = [row for row in json.loads(done.stdout)["processes"] if row["pid"] == target.host_pid]
            self.assertIs(row["readable"], False)
            self.assertIn("Permission denied", row["error"])
            self.assertEqual(row["profiling"], "poor")
            done = run("doctor", "--pid", str(target.host_pid), "--json", agent=agent, prefix=prefix)
            self.assertEqual(done.returncode, 1, done)
            report = json.loads(done.stdout)
            failed = [finding for finding in report["host"] if finding["level"] == "fail"]
            self.assertEqual([finding["check"] for finding in failed], ["capabilities"], failed)
            self.assertIn("sudo", failed[0]["fix"])
            self.assertGreater(len(report["host"]), 8)

    def test_containers_by_their_control_group(self):
        identifier = "0123456789abcdef" * 4
        uid = "0a1b2c3d_4e5f_6789_abcd_ef0123456789"
        try:
            group = ControlGroup(f"kubepods-burstable-pod{uid}.slice", f"cri-containerd-{identifier}.scope")
        except OSError as error:
            self.unavailable(f"no control group can be made: {error}")
        with group, harness.workload("10.0.14", "burn", "--seconds", 120, env={"HOSTNAME": "shop-7d9f-x"}) as target:
            group.add(target.host_pid)
            container = listed(target.host_pid)["container"]
            self.assertEqual(container, {"label": "shop-7d9f-x", "runtime": "containerd", "id": identifier, "name": "shop-7d9f-x",
                                         "pod_uid": uid.replace("_", "-"), "qos": "burstable", "service": ""})
            result = harness.record("--pid", str(target.host_pid), "--duration", "1s")
            (process,) = result.stats["processes"]
            self.assertEqual((process["container"], process["container_id"]), ("shop-7d9f-x", identifier))

    def test_the_table_is_for_people(self):
        with harness.workload("10.0.14", "idle", "--seconds", 120) as target:
            done = run("ps")
            self.assertEqual(done.returncode, 0)
            rows = done.stdout.splitlines()
            self.assertEqual(rows[0].split()[:4], ["PID", "COMM", "CONTAINER", "RUNTIME"])
            (row,) = [row for row in rows if row.split()[0] == str(target.host_pid)]
            self.assertIn("10.0.14", row)
            self.assertTrue(row.endswith("full"), row)
            done = run("doctor", "--pid", str(target.host_pid))
            self.assertEqual(done.returncode, 0)
            for line in done.stdout.splitlines():
                if line and not line.startswith(("process ", "profiling ")):
                    self.assertRegex(line, r"^(pass|warn|fail)  \S")
                    self.assertEqual("  fix: " in line, not line.startswith("pass"), line)


if __name__ == "__main__":
    harness.main()
