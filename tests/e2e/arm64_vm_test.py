#!/usr/bin/env python3
"""The cross-built agent on a real arm64 kernel, in a virtual machine: it profiles the arm64 mini-JIT and draws the expected graph."""
import json
import os
import shutil
import subprocess
import tempfile

import harness
import minijit_live_test
import runtimes

BUILD = os.environ.get("CLRSAMPLER_ARM64_BUILD", os.path.join(runtimes.SOURCE, "build", "aarch64"))
SUITE = "bookworm"
FREQUENCY = 99


class Arm64Test(minijit_live_test.MiniJitTest):
    @classmethod
    def check_needs(cls):
        cls.programs = [os.path.join(BUILD, "clrsampler"), os.path.join(BUILD, "tests", "apps", "minijit")]
        for program in cls.programs:
            if not os.path.exists(program):
                raise harness.Missing(f"no {program}: cmake --preset aarch64 && cmake --build --preset aarch64")
        if not shutil.which("qemu-system-aarch64"):
            raise harness.Missing("no `qemu-system-aarch64` on PATH")

    def test_expected_flame_graph(self):
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as out:
            script = ("minijit --seconds 15 >/out/target & "
                      f"clrsampler --pid $! --duration 60s --frequency {FREQUENCY} --output /out/out.folded --stats /out/stats.json 2>/out/err; "
                      "echo $? >/out/status; wait")
            add = [argument for program in self.programs for argument in ("--add", program)]
            done = subprocess.run([os.path.join(runtimes.SOURCE, "tools", "kernel_matrix", "run_vm"), SUITE, "aarch64", *add,
                                   "--out", out, "--timeout", "240", "--", script], capture_output=True, text=True, timeout=400)
            self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-2000:])

            def read(name):
                with open(os.path.join(out, name), "rb") as f:
                    return f.read()
            result = harness.Result(int(read("status")), read("out.folded"), read("err").decode(), json.loads(read("stats.json")), 0)
            truth = json.loads(read("target").decode().split("truth ")[1])
        # The program runs before the agent samples: seconds in an emulated machine. None of them is of its second method.
        result.unsampled_ns = max(0, truth["leaf_tier0"] + truth["leaf_tier1"] - result.profile.total * harness.period_ns(FREQUENCY))
        self.check_flame_graph(result, truth, FREQUENCY)

    # The other cases of the base class run on this machine only.
    test_private_namespace = None
    test_perf_map_beside_the_jitdump = None
    test_follows_an_exec = None


if __name__ == "__main__":
    harness.main()
