#!/usr/bin/env python3
"""A .NET process on musl, whose libc has next to no unwind data, no frame pointers and no symbols but those it exports.

The test judges names, whole stacks, pauses as the runtime counts them, and where threads wait, by the kernel's word.

One runtime, and all in the matrix. tools/musl_root makes what it runs in; the first time that takes a minute or two.
"""
import json
import os
import re
import signal
import subprocess
import time

import harness
import musl
import pauses_live_test
import stack_truth

MODES = ("json", "linq", "regex", "async", "gc")
FREQUENCY = 499
CPU_SECONDS = 4.0
MOST_DOUBTFUL = 0.005  # of all stacks
MARK = "[caller may be missing]"


class MuslTest(harness.LiveTest):
    NEEDS = ("dotnet", "unshare", "readelf")

    @classmethod
    def check_needs(cls):
        super().check_needs()
        for version in musl.SELECTED:
            musl.root(version)


class StacksTest(MuslTest):
    def test_names_and_whole_stacks(self):
        for version in musl.SELECTED:
            for mode in MODES:
                with self.subTest(version=version, mode=mode), musl.workload(version, mode, "--seconds", 300) as target:
                    target.use_cpu(1.5)  # what has only been compiled is another matter, and the same on glibc
                    # Without probes, whose trampolines the stacks of other tests know (roots_live_test.py).
                    result, _ = harness.record_window(target, CPU_SECONDS, FREQUENCY, "--no-hooks")
                    profile = self.check_result(result, minimum_samples=1000)
                    named, unnamed = profile.managed_unnamed()
                    stacks = result.stats["stacks"]
                    marked = sum(count for frames, count in profile.stacks if any(frame.startswith(MARK) for frame in frames))
                    print(f"    {version} {mode}: {profile.total} stacks, {stacks['broken']} without a root, {marked} marked; managed frames: "
                          f"{named} named, {unnamed} not", flush=True)
                    self.assertGreater(named, 200)
                    self.assertLessEqual(unnamed, stack_truth.allowed_faults(named + unnamed, 1 - MOST_DOUBTFUL))
                    most = stack_truth.allowed_faults(profile.total, 1 - MOST_DOUBTFUL)
                    self.assertLessEqual(stacks["broken"], most, result)
                    self.assertLessEqual(marked, most, result)


def exported(libc):
    """[(start, size, name)] of a library's functions."""
    rows = []
    text = subprocess.run(["readelf", "-W", "--dyn-syms", libc], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[3] in ("FUNC", "NOTYPE") and fields[6] != "UND" and fields[1] != "0" * 16:
            rows.append((int(fields[1], 16), int(fields[2], 0), fields[7].split("@")[0]))
    return rows


def waiting(pid):
    """{tid: (sp, ip)} of the threads that the kernel says are in a system call."""
    threads = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/syscall") as f:
            fields = f.read().split()
        if len(fields) == 9:
            threads[int(tid)] = (int(fields[7], 16), int(fields[8], 16))
    return threads


def await_stop(pid):
    """A signal that stops a process wakes its threads first: each leaves its system call, and comes back to it."""
    deadline = time.monotonic() + 20
    while True:
        states = set()
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/stat") as f:
                states.add(f.read().rpartition(")")[2].split()[0])
        if states == {"T"}:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"threads are in states {states}")
        time.sleep(0.01)


class WaitingTest(MuslTest):
    def libc_at(self, pid):
        """(address minus offset in the file, start, end) of libc's code."""
        with open(f"/proc/{pid}/maps") as maps:
            for line in maps:
                fields = line.split()
                if len(fields) == 6 and "x" in fields[1] and re.fullmatch(r".*/ld-musl-x86_64\.so\.1", fields[5]):
                    start, end = (int(part, 16) for part in fields[0].split("-"))
                    return start - int(fields[2], 16), start, end
        self.fail("the process does not map musl")

    def test_where_threads_wait(self):
        for version in musl.SELECTED:
            with self.subTest(version=version), musl.workload(version, "gc", "--seconds", 300) as target:
                target.use_cpu(1)
                functions = exported(musl.libc(version))
                base, start, end = self.libc_at(target.host_pid)
                target.signal(signal.SIGSTOP)
                await_stop(target.host_pid)
                before = waiting(target.host_pid)
                done = subprocess.run([harness.AGENT, "stacks", "--json", "--pid", str(target.host_pid)], capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 0, done)
                stacks = {row["tid"]: row for row in map(json.loads, done.stdout.splitlines())}
                after = waiting(target.host_pid)
                checked = whole = 0
                for tid, (_, ip) in before.items():
                    if after.get(tid) != before[tid] or not start <= ip < end:
                        continue
                    leaf = stacks[tid]["frames"][0]
                    self.assertEqual(int(leaf["ip"], 16), ip, stacks[tid])
                    checked += 1
                    whole += stacks[tid]["end"] == "complete"
                    # The linker maps musl's code at the address that it has in the file.
                    inside = ip - base
                    holds = [(at, size, name) for at, size, name in functions if name == leaf["name"]]
                    for at, size, name in holds:
                        # vfork's is the only exported function without a size that makes a system call.
                        self.assertTrue(at <= inside < at + size or name == "vfork", f"{name} is at {at:#x}, {size} bytes, the thread at {inside:#x}")
                    if not holds:
                        self.assertRegex(leaf["name"], r"^(ld-musl-x86_64\.so\.1!0x[0-9a-f]+|\[native: no symbols ld-musl-x86_64\.so\.1\])$")
                print(f"    {version}: {checked} of {len(before)} waiting threads are in libc, {whole} stacks are whole", flush=True)
                # In each moment those that wait for signals, for tools and for finalizers; others have work now and then.
                self.assertGreaterEqual(checked, 3)
                self.assertEqual(whole, checked, "\n".join(line[:1500] for line in done.stdout.splitlines()))


class DoctorTest(MuslTest):
    def test_unwind_data_is_compared_with_the_code(self):
        version = musl.SELECTED[0]
        with musl.workload(version, "idle", "--seconds", 60) as target:
            done = subprocess.run([harness.AGENT, "doctor", "--pid", str(target.host_pid)], capture_output=True, text=True, timeout=60)
            (line,) = [line for line in done.stdout.splitlines() if "unwind data" in line]
            share = re.search(r"for (\d+\.\d) % of their code; 1 has it by their instructions", line)
            self.assertTrue(share, done.stdout)
            self.assertGreater(float(share.group(1)), 80)


class PausesTest(MuslTest, pauses_live_test.TruthTest):
    """Counts, generations, kinds and lengths of pauses, as on glibc."""

    @staticmethod
    def start_target(version, arguments, env):
        return musl.workload(version, *arguments, env=env)

    def need_runtime(self, version):
        pass  # check_needs has seen to it

    def each(self, env, versions=None, **expected):
        newer = "exp" in env.get("DOTNET_GCName", "")  # .NET 8 has no such collector
        super().each(env, [version for version in musl.SELECTED if not (newer and version.startswith("8."))], **expected)


if __name__ == "__main__":
    harness.main()
