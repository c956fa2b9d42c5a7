#!/usr/bin/env python3
"""A .NET program for arm64 under qemu-user: every command says what it is, and nothing of it has a name that it can't have."""
import platform

import emulated
import folded
import harness
import inspect_live_test
import vm_programs

VERSION = vm_programs.VERSIONS["aarch64"]
SAID = "arm64 program under emulation: names are not possible"
MARK = "[jit: arm64 code under emulation]"


class EmulatedTest(harness.LiveTest):
    NEEDS = ("dotnet", emulated.EMULATOR)

    @classmethod
    def check_needs(cls):
        super().check_needs()
        if platform.machine() != "x86_64":
            raise harness.Missing("arm64 programs need no emulation here")

    def setUp(self):
        command, environment = emulated.command("workload", VERSION, "mix", "--seconds", "300")
        self.target = self.enterContext(harness.Target(command, env={**environment, "DOTNET_PerfMapEnabled": "3"}))

    def test_ps_and_doctor_say_so(self):
        row = inspect_live_test.listed(self.target.host_pid)
        self.assertEqual((row["runtime"], row["form"], row["arch"], row["libc"]), (VERSION, "emulated", "arm64", "glibc"))
        self.assertEqual((row["symbol_sources"], row["profiling"], row["reason"]), ([], "poor", SAID))
        status, _, findings = inspect_live_test.doctor(self.target.host_pid)
        self.assertNotEqual(status, 0)
        (names,) = inspect_live_test.lines(findings, "names")
        self.assertEqual(names["level"], "fail")
        self.assertIn(SAID, names["what"])
        self.assertIn("profile it on such a machine", names["fix"])
        done = inspect_live_test.run("names", "--pid", str(self.target.host_pid), "--random", "10")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(SAID, done.stderr)

    def test_a_recording_marks_translated_code(self):
        # Its perf map is there, with addresses of code that no processor runs.
        result = harness.record("--pid", str(self.target.host_pid), "--duration", "3s", "--frequency", "199")
        self.assertEqual(result.status, 0, result)
        self.assertEqual(result.err.count(SAID), 1, result)
        frames = {folded.bare(frame) for stack, _ in result.profile.stacks for frame in stack}
        self.assertIn(MARK, frames)
        managed = result.stats["frames"]["managed"]
        self.assertEqual(managed["named"], 0, result)
        self.assertEqual(set(result.stats["frames"]["unnamed_reasons"]) & {"[jit: no map]", "[jit: not in the map]"}, set(), result)
        self.assertTrue(any(frame.startswith("qemu-aarch64-static!") for frame in frames), frames)


if __name__ == "__main__":
    harness.main()
