#!/usr/bin/env python3
"""The capabilities that a user other than root needs, each with what is lost without it. docs/usage.md has them as a table."""
import os
import shutil
import subprocess
import tempfile

import harness

# For processes of one's own.
OWN = ("cap_bpf", "cap_perfmon")
# For those of others: their /proc entries, and files such as a jitdump, which the runtime makes readable for its owner only.
OTHERS = (*OWN, "cap_sys_ptrace", "cap_dac_read_search")
# For images that were deleted or replaced after they were mapped.
ALL = (*OTHERS, "cap_checkpoint_restore")


class CapabilitiesTest(harness.LiveTest):
    NEEDS = ("dotnet", "minijit", "setcap", "setpriv")

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="clrsampler-test-"))
        os.chmod(self.folder, 0o755)
        self.results = os.path.join(self.folder, "results")
        os.mkdir(self.results)
        os.chown(self.results, harness.NOBODY, harness.NOBODY)

    def as_nobody(self, *command):
        return [*harness.AS_NOBODY, *command]

    def agent_with(self, capabilities):
        """A copy of the program that gives these capabilities to every user that runs it."""
        # A new file each time: the process that opened files for the last one may end a moment after it.
        agent = shutil.copy(harness.AGENT, os.path.join(tempfile.mkdtemp(dir=self.folder), "clrsampler"))
        os.chmod(os.path.dirname(agent), 0o755)
        os.chmod(agent, 0o755)
        done = subprocess.run(["setcap", ",".join(capabilities) + "+ep", agent], capture_output=True, text=True)
        if done.returncode:
            self.unavailable(f"setcap: {done.stderr.strip()}")
        return agent

    def record(self, target, capabilities):
        agent = self.agent_with(capabilities)
        if subprocess.run(self.as_nobody(agent, "--help"), capture_output=True).returncode:
            self.unavailable(f"file capabilities have no effect in {self.folder}, or the machine has not all of {capabilities}")
        return harness.record("--pid", str(target.host_pid), "--duration", "2s", "--frequency", "499", agent=self.as_nobody(agent),
                              folder=self.results)

    def refused(self, capabilities):
        """The run must end with one error, and its hint is a set that suffices."""
        agent = self.agent_with(capabilities)
        done = subprocess.run(self.as_nobody(agent, "--pid", str(os.getpid()), "--duration", "1s"), capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual(done.stderr.count("error: "), 1, done.stderr)
        for capability in ALL:
            self.assertIn(capability, done.stderr, "the hint")
        return done.stderr

    def dotnet_target(self):
        # 8.0.30: its jitdump works and is readable for its owner, root, only.
        self.need_runtime("8.0.30")
        return harness.workload("8.0.30", "mix", "--seconds", 60, perf_map=2)

    def test_processes_of_others(self):
        with self.dotnet_target() as target:
            result = self.record(target, OTHERS)
            self.check_result(result, minimum_samples=100)
            self.check_managed_named(result)
            self.assertGreater(result.stats["frames"]["by_source"]["jitdump"], 50, result)
            # The kernel's names need no capability of their own.
            kernel = result.stats["frames"]["kernel"]
            self.assertGreater(kernel["named"], 0, result)
            self.assertEqual(kernel["unnamed"], 0, result)

    def test_each_of_them_is_needed(self):
        for missing in OWN:
            with self.subTest(missing=missing):
                self.assertIn(missing.upper(), self.refused([c for c in OTHERS if c != missing]))
        with self.dotnet_target() as target:
            for missing in ("cap_sys_ptrace", "cap_dac_read_search"):
                with self.subTest(missing=missing):
                    result = self.record(target, [c for c in OTHERS if c != missing])
                    self.check_result(result, minimum_samples=100)  # samples, and no names
                    self.assertEqual(result.stats["frames"]["by_source"]["jitdump"], 0, result)
                    self.assertGreater(result.stats["frames"]["managed"]["unnamed"], 50, result)

    def test_processes_of_ones_own(self):
        minijit = shutil.copy(harness.MINIJIT, self.folder)
        os.chmod(minijit, 0o755)
        with harness.Target(self.as_nobody(minijit, "--seconds", "60")) as target:
            result = self.record(target, OWN)
            profile = self.check_result(result, minimum_samples=100)
            self.assertGreater(profile.with_frame(lambda f: f == "middle"), 0.9 * profile.total, result)

    def test_images_that_were_replaced(self):
        minijit = os.path.join(self.folder, "minijit")
        for capabilities, readable in ((OTHERS, False), (ALL, True)):
            shutil.copy(harness.MINIJIT, minijit)
            with self.subTest(capabilities=capabilities), harness.Target([minijit, "--seconds", "60"]) as target:
                os.unlink(minijit)
                result = self.record(target, capabilities)
                profile = self.check_result(result, minimum_samples=100)
                named = profile.with_frame(lambda f: f == "main")
                if readable:
                    self.assertGreater(named, 0.9 * profile.total, result)
                else:
                    self.assertEqual(named, 0, "cap_checkpoint_restore is not needed: say so in docs/usage.md")
                    self.assertGreater(profile.with_frame(lambda f: f.startswith("[native: cannot read")), 0.9 * profile.total)


if __name__ == "__main__":
    harness.main()
