#!/usr/bin/env python3
"""Profiles of strangers: convert, diff and merge end with a sentence and a hint, in time and in bounded memory, whatever they are given."""
import gzip
import os
import resource
import subprocess
import tempfile
import time
import unittest

import harness

MIB = 1 << 20
ADDRESS_SPACE = 3 << 30  # what docs/formats.md promises
SECONDS, CPU_SECONDS = 600, 120  # it is about runs that hang, or do not get on
OURS = b'{"format":"clrsampler-profile","version":1,'
SPEEDSCOPE = b'{"$schema":"https://www.speedscope.app/file-format-schema.json",'
SAMPLED = SPEEDSCOPE + b'"shared":{"frames":[{"name":"a"}]},"profiles":[{"type":"sampled","name":"x","unit":"none",'
PPROF = b"\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x07samples\x32\x05count"  # sample type samples/count, and the texts


def packed(*parts):
    """(bytes, how many bytes of them repeated) one behind the other, packed as members of a gzip file: bombs of any size at no cost."""
    members = []
    for piece, size in parts:
        block = piece * max(1, min(size, MIB) // len(piece))
        members.append(gzip.compress(block, 6) * (-(-size // len(block)) if size else 1))
    return b"".join(members)


def once(piece):
    return piece, 0


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


# The error's words, and the file. Each unpacks to far more than it has.
BOMBS = {
    "600 MB of zeros": ("more than 512 MiB", packed((b"\0", 600 * MIB))),
    "samples of folded text": ("more than 33554432 samples", packed((b"a 1\n", 160 * MIB))),
    "a column of our JSON": ("more than 33554432 entries", packed(once(OURS + b'"samples":{"time_ns":['), (b"0,", 100 * MIB), once(b"0]}}"))),
    "strings of our JSON": ("too many strings", packed(once(OURS + b'"strings":['), (b'"",', 120 * MIB), once(b'""]}'))),
    "samples of speedscope": ("too many samples", packed(once(SAMPLED + b'"samples":['), (b"[],", 120 * MIB), once(b"[]]}]}"))),
    "weights of speedscope": ("too many samples", packed(once(SAMPLED + b'"weights":['), (b"0,", 100 * MIB), once(b"0]}]}"))),
    "texts of pprof": ("tables are larger", packed(once(PPROF), (b"\x32\x00", 40 * MIB))),
    "functions of a pprof location": ("too many functions", packed(once(
        PPROF + field(5, b"\x08\x01") + field(4, b"\x08\x01" + field(4, b"\x08\x01") * 1_000_000) + field(2, b"\x08\x01\x10\x01")))),
}

HOSTILE = {
    "a name of 100 MB, folded": ("a name of 104857600 bytes", packed(once(b"a;"), (b"n", 100 * MIB), once(b" 1\n"))),
    "a name of 100 MB, our JSON": ("a name of 104857600 bytes", packed(once(OURS + b'"strings":["'), (b"n", 100 * MIB), once(b'"]}'))),
    "a name of 100 MB, speedscope": ("a name of 104857600 bytes", packed(once(SPEEDSCOPE + b'"shared":{"frames":[{"name":"'), (b"n", 100 * MIB), once(b'"}]}}'))),
    "a name of 100 MB, pprof": ("a name of 104857600 bytes", packed(
        once(PPROF + b"\x32" + varint(100 * MIB)), (b"n", 100 * MIB),
        once(field(5, b"\x08\x01\x10\x03") + field(4, b"\x08\x01" + field(4, b"\x08\x01")) + field(2, b"\x08\x01\x10\x01")))),
    "our JSON, nested": ("nested", packed(once(OURS + b'"meta":{"account":'), (b"[", 100 * MIB))),
    "speedscope, nested": ("nested", packed(once(SPEEDSCOPE + b'"x":'), (b'{"a":', 100 * MIB))),
    "a stack of a million frames": ("more than 4096 frames", packed(once(b"a"), (b";f", 2 * MIB), once(b" 1\n"))),
    "gzip that ends early": ("ends too early", gzip.compress(b"a;b 1\n" * 1000)[:-9]),
    "gzip with a wrong sum": ("damaged", gzip.compress(b"a;b 1\n")[:-8] + b"\0" * 8),
    "gzip of nothing but a header": ("ends too early", gzip.compress(b"")[:10]),
    "pprof that ends early": ("no protobuf message", PPROF + field(2, b"\x08\x01" * 100)[:50]),
    "a field of 2 GiB": ("no protobuf message", PPROF + b"\x12" + varint(1 << 31)),
    "our JSON that ends early": ("damaged at byte", OURS + b'"strings":["a'),
    "a count that is too large": ("2^63", b"a;b 9223372036854775807\na;b 9223372036854775807\n"),
}


class HostileProfilesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="clrsampler-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.good = cls.write("good.folded", b"app;Main;Work 7\n")

    @classmethod
    def write(cls, name, data):
        path = os.path.join(cls.folder, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def run_limited(self, *arguments, address_space=ADDRESS_SPACE):
        """(exit status, standard error, peak memory in bytes)"""
        with tempfile.TemporaryFile() as err:
            process = subprocess.Popen([harness.AGENT, *arguments], stdout=subprocess.DEVNULL, stderr=err, preexec_fn=lambda: (
                resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space)), resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
                resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))))
            deadline = time.monotonic() + SECONDS
            while True:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                if time.monotonic() > deadline:
                    process.kill()
                time.sleep(0.01)
            process.returncode = os.waitstatus_to_exitcode(status)
            err.seek(0)
            return process.returncode, err.read().decode("utf-8", "replace"), usage.ru_maxrss * 1024

    def check(self, what, *arguments):
        status, err, memory = self.run_limited(*arguments)
        self.assertEqual(status, 1, f"{status}: {err[:400]}")
        lines = err.splitlines()
        self.assertEqual([line.partition(":")[0] for line in lines], ["error", "hint"], err[:400])
        self.assertIn(what, lines[0])
        self.assertLess(len(err), 600)
        return memory

    def test_bombs_end_at_limits(self):
        largest = 0
        for name, (what, data) in BOMBS.items():
            with self.subTest(name):
                largest = max(largest, self.check(what, "convert", self.write("bomb", data), "-"))
        print(f"at most {largest / MIB:.0f} MiB")

    def test_hostile_files_are_errors_of_each_command(self):
        for name, (what, data) in HOSTILE.items():
            path = self.write("hostile", data)
            commands = [("convert", path, "-"), ("merge", self.good, path), ("diff", self.good, path), ("diff", path, self.good)]
            # They read by the same code: of the large ones one is enough for all.
            for command in commands[:1] if len(data) > 10_000 else commands:
                with self.subTest(name, command=command[0]):
                    self.check(what, *command)

    def test_profiles_that_are_too_large_together(self):
        # 20 million samples each.
        path = self.write("large.gz", packed((b"a 1\n", 80_000_000)))
        self.check("samples together", "merge", path, path)

    def test_too_little_memory_is_said(self):
        path = self.write("large.gz", packed((b"a;b 1\n", 150 * MIB)))
        status, err, _ = self.run_limited("convert", path, "-", address_space=300 * MIB)
        self.assertEqual((status, err.splitlines()[:1]), (1, ["error: no more memory"]), err)


if __name__ == "__main__":
    harness.main()
