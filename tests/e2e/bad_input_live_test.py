#!/usr/bin/env python3
"""Hostile and damaged input: each run ends in time, with a clear account and a usable result, and reads nothing it must not."""
import os
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import time
import unittest

import folded
import harness
import runtimes

SECONDS = 2
SLACK = 4  # what a run may take beyond its duration, on a busy machine
RSS_LIMIT = 256 << 20


def record_prefix(kind, total_size):
    return struct.pack("<IIQ", kind, total_size & 0xFFFFFFFF, time.clock_gettime_ns(time.CLOCK_MONOTONIC))


def load_record(name=b"hostile\0", address=0x7000, code_size=0, total_size=None, body=b""):
    whole = struct.pack("<IIQQQQ", 1, 1, address & (2**64 - 1), address & (2**64 - 1), code_size & (2**64 - 1), 99) + name + body
    return record_prefix(0, total_size if total_size is not None else 16 + len(whole)) + whole


# What somebody appends to a good jitdump. Nothing of it may disturb the names that came before.
HOSTILE_RECORDS = {
    "record of size 0": record_prefix(0, 0) + b"x" * 64,
    "record smaller than its own prefix": record_prefix(0, 8) + b"x" * 64,
    "record of 4 GiB": record_prefix(0, 0xFFFFFFFF) + b"x" * 64,
    "record of negative size": record_prefix(0, -64) + b"x" * 64,
    "code size of 2^64 - 1": load_record(code_size=-1),
    "code size of 4 GiB": load_record(code_size=4 << 30),
    "method that wraps around the address space": load_record(address=-16, code_size=4096),
    "method that covers everything": load_record(name=b"everything\0", address=0, code_size=2**63 - 1),
    "name without an end": load_record(name=b"n" * 200),
    "name of control bytes and separators": load_record(name=b"a;b\x01\x7f\xff 42\0"),
    "load record too short for its fields": record_prefix(0, 24) + b"x" * 8,
    "torn record": load_record()[:30],
    "debug info with 2^60 entries": record_prefix(2, 64) + struct.pack("<QQ", 0x7000, 1 << 60) + b"x" * 32,
    "unwinding info with sizes of 2^63": record_prefix(4, 64) + struct.pack("<QQQ", 1 << 63, 1 << 63, 1 << 63) + b"x" * 24,
    "move of unknown code": record_prefix(1, 64) + struct.pack("<IIQQQQ", 1, 1, 0x1, 0x2, 1 << 62, 1 << 61) + b"",
    "unknown kind": record_prefix(4711, 40) + b"x" * 24,
    "noise": bytes((i * 7919 + 13) % 256 for i in range(100_000)),
}

HOSTILE_HEADERS = {
    "wrong magic": b"ELF!" + b"\0" * 36,
    "header of 4 GiB": struct.pack("<IIIIIIQQ", 0x4A695444, 1, 0xFFFFFFFF, 62, 0, 1, 0, 0),
    "header of size 0": struct.pack("<IIIIIIQQ", 0x4A695444, 1, 0, 62, 0, 1, 0, 0),
    "version 99": struct.pack("<IIIIIIQQ", 0x4A695444, 99, 40, 62, 0, 1, 0, 0),
    "big-endian header before little-endian records": struct.pack(">IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 0, 0),
}


class HostileTest(harness.LiveTest):
    def setUp(self):
        self.secrets = []
        if os.access("/etc/shadow", os.R_OK):
            with open("/etc/shadow", errors="replace") as f:
                self.secrets = [line.strip() for line in f if len(line.strip()) > 6]

    def check_hostile(self, result, minimum_samples=50, seconds=SECONDS):
        profile = self.check_result(result, minimum_samples=minimum_samples)
        self.check_account_text(result)
        self.assertLess(result.seconds, seconds + SLACK, result)
        self.assertLess(result.stats["self"]["peak_rss_bytes"], RSS_LIMIT, result)
        everything = result.out.decode("utf-8", "replace") + result.err + str(result.stats)
        for secret in self.secrets:
            self.assertNotIn(secret, everything)
        self.assertNotIn("STOLEN", everything, "a file outside the target's reach was read")
        return profile

    def record(self, target, *more, frequency=199):
        return harness.record("--pid", str(target.host_pid), "--duration", f"{SECONDS}s", "--frequency", str(frequency), *more)


class HostileJitdumpTest(HostileTest):
    NEEDS = ("minijit",)

    def test_records_after_good_ones(self):
        for what, tail in HOSTILE_RECORDS.items():
            with self.subTest(what), harness.Target([harness.MINIJIT, "--seconds", "60"]) as target:
                with open(f"/tmp/jit-{target.pid}.dump", "ab") as f:
                    f.write(tail)
                profile = self.check_hostile(self.record(target))
                self.assertGreater(profile.with_frame(lambda f: f == "middle"), 0.9 * profile.total, "good records lost their names")

    def test_records_while_tailed(self):
        for what in ("record of 4 GiB", "torn record", "noise"):
            with self.subTest(what), harness.Target([harness.MINIJIT, "--seconds", "60"]) as target:
                agent = harness.Agent(("--pid", str(target.pid), "--duration", "3s", "--frequency", "199"))
                time.sleep(1.5)
                with open(f"/tmp/jit-{target.pid}.dump", "ab") as f:
                    f.write(HOSTILE_RECORDS[what])
                profile = self.check_hostile(agent.finish(30), seconds=3)
                self.assertGreater(profile.with_frame(lambda f: f == "middle"), 0.9 * profile.total)

    def test_headers(self):
        for what, header in HOSTILE_HEADERS.items():
            with self.subTest(what), harness.Target([harness.MINIJIT, "--seconds", "60"]) as target:
                with open(f"/tmp/jit-{target.pid}.dump", "r+b") as f:
                    f.write(header)
                self.check_hostile(self.record(target))

    def test_truncated_while_tailed(self):
        with harness.Target([harness.MINIJIT, "--seconds", "60"]) as target:
            agent = harness.Agent(("--pid", str(target.pid), "--duration", "3s", "--frequency", "199"))
            time.sleep(1.5)
            os.truncate(f"/tmp/jit-{target.pid}.dump", 20)
            self.check_hostile(agent.finish(30), seconds=3)

    def test_other_things_in_its_place(self):
        for what in Impostor.KINDS:
            with self.subTest(what), harness.Target([harness.MINIJIT, "--seconds", "60"]) as target, \
                 Impostor(what, f"/tmp/jit-{target.pid}.dump"):
                self.check_hostile(self.record(target))

    def test_target_killed_while_sampled(self):
        with harness.Target([harness.MINIJIT, "--seconds", "60"]) as target:
            agent = harness.Agent(("--pid", str(target.pid), "--duration", "30s", "--frequency", "499"))
            time.sleep(2.5)
            target.kill()
            result = agent.finish(10)
        profile = self.check_hostile(result, minimum_samples=200, seconds=5)
        self.assertGreater(profile.with_frame(lambda f: f == "middle"), 0.9 * profile.total)

    def test_tiny_ring_buffer(self):
        """An agent that stands still for a second while its ring holds some dozen samples: it must lose, and say so."""
        with harness.Target([harness.MINIJIT, "--seconds", "60"]) as target:
            agent = harness.Agent(("--pid", str(target.host_pid), "--duration", "4s", "--frequency", "999", "--ring-bytes", "64KiB"))
            time.sleep(1.5)
            os.kill(agent.process.pid, signal.SIGSTOP)
            time.sleep(1)
            os.kill(agent.process.pid, signal.SIGCONT)
            result = agent.finish(40)
        self.check_hostile(result)
        samples = result.stats["samples"]
        self.assertGreater(samples["lost"]["ring_full"], 300, result)
        self.assertIn("lost: ", result.err)
        self.assertAlmostEqual(samples["taken"] + sum(samples["lost"].values()), samples["expected"],
                               delta=0.15 * samples["expected"], msg=result)

    def test_a_thousand_short_processes(self):
        script = "i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done"
        agent = harness.Agent(("--duration", "5s", "--frequency", "999"))
        time.sleep(1)
        shell = subprocess.Popen(["sh", "-c", script])
        result = agent.finish(40)
        shell.wait(60)
        profile = self.check_hostile(result, minimum_samples=100, seconds=5)
        roots = {frames[0] for frames, _ in profile.stacks}
        self.assertIn(f"sh-{shell.pid}", roots)
        # They end long before anybody looks at them, and are still told apart.
        self.assertGreater(sum(root.startswith("true-") for root in roots), 50, sorted(roots)[:50])


class Impostor:
    """Something else under the name of a map, as long as the context lasts."""

    KINDS = ("fifo", "symlink to /etc/shadow", "symlink to a map that names everything", "dangling symlink", "symlink loop", "10 GiB sparse file",
             "directory", "socket", "device", "empty file", "noise", "unreadable file")

    def __init__(self, kind, path):
        self.kind, self.path = kind, path
        self.secret = tempfile.NamedTemporaryFile("w", prefix="clrsampler-test-", delete=False)

    def __enter__(self):
        self._remove()
        if self.kind == "fifo":
            os.mkfifo(self.path)
        elif self.kind == "symlink to /etc/shadow":
            os.symlink("/etc/shadow", self.path)
        elif self.kind == "symlink to a map that names everything":
            self.secret.write("1000 7fffffffe000 STOLEN\n")
            self.secret.flush()
            os.chmod(self.secret.name, 0o600)
            os.symlink(self.secret.name, self.path)
        elif self.kind == "dangling symlink":
            os.symlink("/no/such/file", self.path)
        elif self.kind == "symlink loop":
            os.symlink(self.path, self.path)
        elif self.kind == "10 GiB sparse file":
            with open(self.path, "wb") as f:
                f.truncate(10 << 30)
        elif self.kind == "directory":
            os.mkdir(self.path)
        elif self.kind == "socket":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.bind(self.path)
        elif self.kind == "device":
            os.mknod(self.path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero never ends
        elif self.kind == "empty file":
            open(self.path, "w").close()
        elif self.kind == "noise":
            with open(self.path, "wb") as f:
                f.write(HOSTILE_RECORDS["noise"])
        elif self.kind == "unreadable file":
            open(self.path, "w").close()
            os.chmod(self.path, 0)

    def _remove(self):
        try:
            os.rmdir(self.path) if os.path.isdir(self.path) and not os.path.islink(self.path) else os.unlink(self.path)
        except FileNotFoundError:
            pass

    def __exit__(self, *_):
        self._remove()
        self.secret.close()
        os.unlink(self.secret.name)
        if self.kind == "socket":
            self.socket.close()


class HostilePerfMapTest(HostileTest):
    NEEDS = ("dotnet",)

    def test_other_things_in_its_place(self):
        for what in Impostor.KINDS:
            # One target per case: the profiler may only look when it first meets a process.
            with self.subTest(what), harness.workload(runtimes.INSTALLED, "mix", "--seconds", 60) as target, \
                 Impostor(what, f"/tmp/perf-{target.pid}.map"):
                profile = self.check_hostile(self.record(target))
                # No map: ready-to-run code is named all the same.
                self.assertGreater(profile.with_frame(lambda f: f.startswith("System.")), 10)

    def hostile_writer(self, change):
        with harness.workload(runtimes.INSTALLED, "jit", "--seconds", 60, perf_map=3) as target:
            agent = harness.Agent(("--pid", str(target.pid), "--duration", "4s", "--frequency", "499"))
            time.sleep(2)
            change(f"/tmp/perf-{target.pid}.map")
            result = agent.finish(30)
        profile = self.check_hostile(result, minimum_samples=200, seconds=4)
        # What was read before the change stays named.
        self.assertGreater(profile.with_frame(lambda f: f.startswith("Workload.Loops.JitMethods")), 50, result)

    def test_truncated_while_tailed(self):
        # The runtime goes on writing at its old offset: the file becomes NUL bytes and then lines.
        self.hostile_writer(lambda path: os.truncate(path, 0))

    def test_grown_to_10_gib_while_tailed(self):
        self.hostile_writer(lambda path: os.truncate(path, 10 << 30))

    def test_replaced_while_tailed(self):
        def replace(path):
            with open(path + ".new", "w") as f:
                f.write("1000 10 Other.Process::Method()[Optimized]\n")
            os.rename(path + ".new", path)
        self.hostile_writer(replace)

    def test_removed_while_tailed(self):
        self.hostile_writer(os.unlink)

    def test_replaced_by_a_fifo_while_tailed(self):
        def replace(path):
            os.unlink(path)
            os.mkfifo(path)
        self.hostile_writer(replace)

    def test_hostile_lines(self):
        lines = (b"zzzz 10 not hex\n" b"\n" b"10\n" b"10 20\n" b"ffffffffffffffff ffffffffffffffff wraps\n" b"0 ffffffffffffffff everything\n"
                 b"0x7000 -5 negative\n" + b"7000 10 " + b"L" * 1_000_000 + b"\n" b"7000 10 a;b\x01 42\r\n" b"7000 10 nul\0byte\n"
                 b"99999999999999999999999 10 too long\n" b"7000 10 half a li")

        def append(path):
            with open(path, "ab") as f:
                f.write(lines)
        self.hostile_writer(append)


if __name__ == "__main__":
    harness.main()
