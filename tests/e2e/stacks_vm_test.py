#!/usr/bin/env python3
"""Whole stacks of a .NET program on 5.10 and on the newest kernel, x86_64 and arm64, in virtual machines.

Every stack of the program's known chain must be the chain, each caller in its place, from the leaf to its thread's start. The program
spends its time in small methods and stubs, so that most leaves have no frame of their own yet, or any more.

  stacks_vm_test.py                                  four machines, a minute each
  CLRSAMPLER_VM_CASES=sid/aarch64 stacks_vm_test.py  only machines that match
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import folded
import harness
import runtimes
import vm_programs

ARM64_AGENT = os.path.join(os.environ.get("CLRSAMPLER_ARM64_BUILD", os.path.join(runtimes.SOURCE, "build", "aarch64")), "clrsampler")
MACHINES = [(suite, arch) for arch in ("x86_64", "aarch64") for suite in ("bullseye", "sid")]
SECONDS = 6
STARTS = ("Chain.Main", "Chain.OnThread")
CHAIN = ("Chain.Work", "Chain.Outer", "Chain.Middle", "Chain.Leaf")
SMALL = ("Chain.Tiny", "One.Step", "Two.Step")
# Where libc starts threads and programs. The machines' libraries have no symbols beside those for linking.
ROOT = re.compile(r"_start|__?clone3?|start_thread|thread_start|libc\.so\.6!0x[0-9a-f]+|\[native: no symbols (app|dotnet)\]|(app|dotnet)!0x[0-9a-f]+")
# Work that the runtime does for the thread from here on: it compiles what it runs, for example. "[jit: ...]" is a reason for no name.
ROLE = re.compile(r"\[(gc|jit|suspending) .*\]")

GUEST = """
export {environment} DOTNET_TieredPGO=0
{command} {lifetime} >/tmp/output &
pid=$!
while kill -0 $pid && ! grep -q started /tmp/output; do sleep 0.2; done
clrsampler --pid $pid --duration {seconds}s --frequency 99 --output /out/out.folded --stats /out/stats.json --save-stacks /out/stacks 2>/out/err
echo $? >/out/status
cp /proc/$pid/maps /out/maps
kill -9 $pid
"""


def fault(frames):
    """The fault of a stack of the chain, its frames from the root to the leaf without suffixes; "" if it is whole; None: no such stack."""
    frames = frames[:next((i for i, frame in enumerate(frames) if ROLE.fullmatch(frame)), len(frames))]
    own = [i for i, frame in enumerate(frames) if frame.startswith(("Chain.", "One.", "Two."))]
    if not own:
        return None
    # "[vdso]!0x650": a place in an image that has brackets in its name.
    marks = [frame for frame in frames if frame.startswith("[") and not frame.startswith(("[native: no symbols", "[stub ", "[vdso]!"))]
    if marks:
        return f"marked {marks[0]}"
    if not frames or not ROOT.fullmatch(frames[0]):
        return "does not reach the thread's start"
    if own != list(range(own[0], own[0] + len(own))):
        return "frames between those of the chain"
    names = [frames[i] for i in own]
    if names[0] not in STARTS:
        return "does not begin in Main or OnThread"
    rest = names[1:]
    by_interface = "[stub VSD_" in frames[-1]
    if by_interface or rest[-1:] and rest[-1] in SMALL:
        if (rest if by_interface else rest[:-1]) != list(CHAIN):
            return "a small method or stub that Leaf does not call"
    elif rest != list(CHAIN[:len(rest)]):
        return "a caller is missing"
    return ""


class StacksVmTest(harness.LiveTest):
    @classmethod
    def check_needs(cls):
        pattern = re.compile(os.environ.get("CLRSAMPLER_VM_CASES", ""))
        cls.machines = [machine for machine in MACHINES if pattern.search("/".join(machine))]
        for _, arch in cls.machines:
            if not os.access(cls.agent(arch), os.X_OK):
                raise harness.Missing(f"no program at {cls.agent(arch)}")
            if not shutil.which(f"qemu-system-{arch}"):
                raise harness.Missing(f"no `qemu-system-{arch}` on PATH")

    @staticmethod
    def agent(arch):
        return ARM64_AGENT if arch == "aarch64" else harness.AGENT

    def record(self, suite, arch, keep):
        try:
            parts, command = vm_programs.parts(["chain"], arch), vm_programs.command("chain", arch)
        except runtimes.Missing as reason:
            self.unavailable(str(reason))
        script = GUEST.format(command=" ".join(command), lifetime=20 * SECONDS, seconds=SECONDS, environment=vm_programs.ENVIRONMENT)
        run_vm = os.path.join(runtimes.SOURCE, "tools", "kernel_matrix", "run_vm")
        for _ in range(2):
            done = subprocess.run([run_vm, suite, arch, "--add", f"{self.agent(arch)}:/bin/clrsampler", *parts, "--out", keep,
                                   "--timeout", "300", "--", script], capture_output=True, text=True, timeout=500)
            if done.returncode != 125:  # the machine died while it booted, which happens
                break
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-2000:])

        def read(name):
            with open(os.path.join(keep, name), "rb") as f:
                return f.read()
        return harness.Result(int(read("status")), read("out.folded"), read("err").decode(), json.loads(read("stats.json")), 0)

    def test_whole_stacks(self):
        for suite, arch in self.machines:
            with self.subTest(kernel=suite, arch=arch), tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
                result = self.record(suite, arch, os.environ.get("CLRSAMPLER_VM_KEEP", folder))
                profile = self.check_result(result, minimum_samples=200)
                judged = small = 0
                faults = []
                for stack, count in profile.stacks:
                    frames = [folded.bare(frame) for frame in stack[1:] if not frame.endswith("_[k]")]
                    what = fault(frames)
                    if what is None:
                        continue
                    judged += count
                    small += count if frames[-1] in SMALL or frames[-1].startswith("[stub ") else 0
                    if what:
                        faults.append(f"{count} {what}: {';'.join(stack)}")
                unwind = result.stats["unwind"]
                print(f"{suite}/{arch}: {judged} stacks of the chain of {profile.total}, {small} with a small method as leaf; {unwind}", flush=True)
                self.assertFalse(faults, "\n".join(faults[:10]))
                self.assertGreater(judged, 0.9 * profile.total, result)
                self.assertGreater(small, 0.05 * judged, "the leaves without a frame were not met")
                if arch == "aarch64":
                    self.assertGreater(unwind["arm64_without_frame"], 0, unwind)
                    self.assertEqual(unwind["arm64_unreadable"], 0, unwind)


class FaultTest(unittest.TestCase):
    def test_judges(self):
        whole = ["libc.so.6!0xebf50", "libc.so.6!0x81d50", "System.Threading.Thread.StartCallback", "Chain.OnThread", *CHAIN]
        self.assertIsNone(fault(whole[:3]))
        for stack in (whole, whole[:4], whole[:5], [*whole, "Chain.Tiny"], [*whole, "Two.Step"], [*whole, "[stub VSD_ResolveStub]"],
                      [*whole[:5], "[jit Chain.Work OptimizedTier1OSR]", "clrjit!0x1"], ["_start", "Chain.Main", "Chain.Work", "clock_gettime"],
                      ["_start", "Chain.Main", "Chain.Work", "clock_gettime", "[vdso]!0x650"]):
            self.assertEqual(fault(stack), "", stack)
        for stack in (whole[1:3] + whole[4:], whole[:6] + whole[7:], [*whole[:7], "Chain.Tiny"], [*whole[:7], "[stub VSD_ResolveStub]"], [*whole[:5], "app!0x10", *whole[5:]],
                      ["[caller may be missing]", *whole], ["System.Threading.Thread.StartCallback", *whole[3:]]):
            self.assertTrue(fault(stack), stack)


if __name__ == "__main__":
    harness.main()
