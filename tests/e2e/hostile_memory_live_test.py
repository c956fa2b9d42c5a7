#!/usr/bin/env python3
"""Errors in what is read of a runtime's memory, on each version: nothing hangs, nothing crashes, no name is wrong."""
import os
import signal
import subprocess
import time

import harness
import runtimes

PROGRAM = os.environ.get("HOSTILE_MEMORY_TEST", os.path.join(runtimes.SOURCE, "build/release/tests/unit/clr/memory/hostile_memory_test"))


class HostileMemoryTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def test_each_runtime(self):
        for version in (*runtimes.PACKED_VERSIONS, *runtimes.LATER_VERSIONS, runtimes.INSTALLED):
            with self.subTest(version=version):
                self.need_runtime(version)
                with harness.workload(version, "mix", "--seconds", 300, "--threads", 2) as target:
                    time.sleep(2)  # so that methods of all tiers are there
                    # Stopped, so that two readings of it must be equal.
                    os.kill(target.host_pid, signal.SIGSTOP)
                    done = subprocess.run([PROGRAM], env=dict(os.environ, CLRSAMPLER_TARGET_PID=str(target.host_pid)),
                                          capture_output=True, text=True, errors="replace", timeout=280)
                self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-6000:])
                self.assertIn("0 wrong", done.stdout)
                self.assertNotIn("SKIPPED", done.stdout)


if __name__ == "__main__":
    harness.main()
