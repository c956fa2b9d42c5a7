#!/usr/bin/env python3
"""Hooks planted and taken out again and again in busy programs, which must not notice: CLRSAMPLER_HOOK_ROUNDS times in all, a moment each."""
import contextlib
import os
import subprocess

import harness
import runtimes
from watcher import changed_code, goes_on

ROUNDS = int(os.environ.get("CLRSAMPLER_HOOK_ROUNDS", "20"))
HOOK_CHURN = os.environ.get("HOOK_CHURN", os.path.join(runtimes.SOURCE, "build", "release", "tests", "apps", "hook_churn"))
VERSIONS = runtimes.selected()
# Collections all the time, compilations all the time, and the collector of servers, whose threads stop each other.
TARGETS = (("gc", {}), ("expr", {}), ("gc", {"DOTNET_gcServer": "1"}))


class HookChurnTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    @classmethod
    def check_needs(cls):
        super().check_needs()
        if not os.access(HOOK_CHURN, os.X_OK):
            raise harness.Missing(f"no program at {HOOK_CHURN}; build it, or name it in HOOK_CHURN")

    def test_busy_programs_go_on(self):
        rounds = -(-ROUNDS // len(VERSIONS))
        with contextlib.ExitStack() as stack:
            churns = []
            for version in VERSIONS:
                self.need_runtime(version)
                targets = [stack.enter_context(harness.workload(version, mode, "--seconds", 7200, "--ticks", env=env)) for mode, env in TARGETS]
                command = [HOOK_CHURN, str(rounds), *(str(target.host_pid) for target in targets)]
                churns.append((version, targets, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)))
                stack.callback(churns[-1][2].kill)
            for version, targets, churn in churns:
                with self.subTest(version=version):
                    out, err = churn.communicate(timeout=60 + 10 * rounds)  # a round takes 0.9 s, in which the kernel waits
                    alive = [target.process.poll() for target in targets]
                    self.assertEqual(alive, [None] * len(targets), f"a target ended: {[t._stderr() for t in targets]}")
                    self.assertEqual(churn.returncode, 0, err)
                    print(f"    {version}: {'; '.join(out.splitlines())}", flush=True)
                    for target in targets:
                        self.assertEqual(changed_code(target.host_pid), 0, "probes are left")
                        self.assertTrue(goes_on(target), "the target does not go on")


if __name__ == "__main__":
    harness.main()
