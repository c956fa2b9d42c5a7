#!/usr/bin/env python3
"""perf and a jitdump that its process did not write: tools/perf_with_jitdump makes perf show its names, lines and code.

The target has code that it made itself, in memory without a file, as a .NET process has that nobody prepared."""
import collections
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import harness
import line_truth
import lines_live_test
import runtimes

TOOL = os.path.join(runtimes.SOURCE, "tools", "perf_with_jitdump")
NAME = "Shop.Cart.Total[OptimizedTier1]"

# Four times mov ecx, 50000000; sub ecx, 1; jne to the sub. Then ret. Each loop has lines of its own: within one loop the interrupts of some machines
# come behind the same instruction always.
CODE = bytes.fromhex("b980f0fa02" "83e901" "75fb") * 4 + bytes.fromhex("c3")
# Offset, file, line, as our writer has them: 0 for code without a line, and one at the end.
LINES = ((0, "/src/Cart.cs", 10), (5, "/src/Cart.cs", 11), (10, "/src/Cart.cs", 0), (20, "/src/Tax.cs", 13), (30, "/src/Tax.cs", 14), (41, "/src/Tax.cs", 14))

TARGET = f"""
import ctypes, mmap, sys
area = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
area.write(bytes.fromhex("{CODE.hex()}"))
address = ctypes.addressof(ctypes.c_char.from_buffer(area))
run = ctypes.CFUNCTYPE(None)(address)
print(address, flush=True)
while True:
    run()
"""


def jitdump(pid, address):
    """A header, lines, code and the end; stamps are older than any sample."""
    entries = b"".join(struct.pack("<QII", address + offset, line, 0) + file.encode() + b"\0" for offset, file, line in LINES)
    name = NAME.encode() + b"\0"
    return b"".join((
        struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, pid, 1, 0),
        struct.pack("<IIQQQ", 2, 32 + len(entries), 1, address, len(LINES)), entries,
        struct.pack("<IIQIIQQQQ", 0, 56 + len(name) + len(CODE), 1, pid, pid, address, address, len(CODE), 1), name, CODE,
        struct.pack("<IIQ", 3, 16, 1)))


def line_at(offset):
    file, line = [(file, line) for at, file, line in LINES if at <= offset][-1]
    return f"{os.path.basename(file)}:{line}"


def jitdump_lines(path):
    """[(begin, end, line)] of what `clrsampler jitdump` prints of debug information."""
    text = subprocess.run([harness.AGENT, "jitdump", path], capture_output=True, text=True, timeout=60, check=True).stdout
    ranges, entries = [], []  # entries: of the record before, which is of the code that the next one loads
    for line in text.splitlines():
        if entry := re.match(r" +0x([0-9a-f]+) (\S+):(\d+)$", line):
            entries.append((int(entry[1], 16), f"{os.path.basename(entry[2])}:{entry[3]}"))
        elif load := re.match(r"\d+ load +0x([0-9a-f]+) 0x([0-9a-f]+) ", line):
            ends = [at for at, _ in entries[1:]] + [int(load[1], 16) + int(load[2], 16)]
            ranges += [(at, end, where) for (at, where), end in zip(entries, ends)]
            entries = []
    return ranges


def jitdump_records(path):
    """{kind: how many records of it `clrsampler jitdump` prints}"""
    text = subprocess.run([harness.AGENT, "jitdump", path], capture_output=True, text=True, timeout=60, check=True).stdout
    return collections.Counter(re.findall(r"^\d+ (\w+)", text, re.M))


def frame_rows(image):
    """{address: {column: rule}} of an ELF image, as readelf reads its unwind data: the caller's sp is CFA, and c-16 lies 16 below it."""
    text = subprocess.run(["readelf", "--debug-dump=frames-interp", image], capture_output=True, text=True, timeout=60, check=True).stdout
    columns, rows = [], {}
    for line in text.splitlines():
        fields = line.split()
        if fields[:1] == ["LOC"]:
            columns = fields[1:]
        elif re.match(r"[0-9a-f]{16} r", line):
            rows[int(fields[0], 16)] = dict(zip(columns, fields[1:]))
    return rows


def pushes_rbp_first(image):
    """The address of the image's code where its first instruction is `push rbp`."""
    text = subprocess.run(["objdump", "-d", image], capture_output=True, text=True, timeout=60, check=True).stdout
    first = re.search(r"^ +([0-9a-f]+):\t([0-9a-f]{2}) ", text, re.M)
    return int(first[1], 16) if first and first[2] == "55" else None


@unittest.skipUnless(platform.machine() == "x86_64", "unwind data is written for x86-64")
class DotnetCallersTest(harness.LiveTest):
    """perf unwinds a .NET process that nobody prepared by the unwind data of our jitdump."""

    NEEDS = ("dotnet", "perf")
    VERSION = "10.0.15"
    METHOD, CALLER, OUTER = "Lines.Hot.Dear[", "Lines.Hot.Statements[", "Lines.Hot.Work["
    STARTS = ("System.Threading.Thread.StartCallback[", "start_thread")

    def setUp(self):
        self.need_runtime(self.VERSION)
        self.folder = tempfile.mkdtemp(prefix="clrsampler-perf-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def record(self):
        # A method that replaced itself while it ran, and has no room for its unwind data, ends the stack (docs/formats.md).
        with lines_live_test.Program(self.VERSION, {"DOTNET_TC_OnStackReplacement_InitialCounter": "7FFFFFFF"}) as target:
            pid = str(target.host_pid)
            command = [harness.AGENT, "--quiet", "--pid", pid, "-d", "7s", "-F", "999", "-o", self.path("x.jitdump"), "-o", self.path("x.json")]
            with subprocess.Popen(command) as ours:
                subprocess.run(["perf", "record", "-k", "mono", "-e", "cpu-clock", "-F", "99", "--call-graph", "dwarf", "-p", pid, "-o", self.path("perf.data"),
                                "--", "sleep", "5"], capture_output=True, timeout=120, check=True)
                self.assertEqual(ours.wait(timeout=60), 0)

    def stacks(self, dump):
        """Names of frames, innermost first, of the samples in METHOD."""
        subprocess.run([TOOL, self.path("perf.data"), dump, "-o", dump + ".data"], check=True, timeout=120)
        text = subprocess.run(["perf", "script", "-i", dump + ".data", "-F", "ip,sym"], capture_output=True, text=True, errors="replace", timeout=120, check=True).stdout
        stacks = [[line.split(None, 1)[1] for line in block.splitlines() if len(line.split(None, 1)) == 2] for block in text.split("\n\n")]
        return [names for names in stacks if names and names[0].startswith(self.METHOD)]

    def images(self):
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.path("x.jitdump.data.jit")) for name in names if name.endswith(".so")]

    def evidence(self, method):
        """Facts that a failure has to show: the method's records, and the unwind data of its images as perf reads them."""
        records = subprocess.run([harness.AGENT, "jitdump", self.path("x.jitdump")], capture_output=True, text=True, timeout=60, check=True).stdout
        lines = [line for line in records.splitlines() if re.match(r"\d+ (load|unwind)", line)]
        for image in self.images():
            if method in subprocess.run(["nm", image], capture_output=True, text=True, timeout=60, check=True).stdout:
                lines += [image, subprocess.run(["readelf", "-lS", "--debug-dump=frames-interp", image], capture_output=True, text=True, timeout=60, check=True).stdout]
        return "\n".join(lines)

    def check_callers(self):
        stacks = self.stacks(self.path("x.jitdump"))
        self.assertGreater(len(stacks), 50)
        # Unwind data says nothing of the few instructions of an epilogue.
        known = [names for names in stacks if len(names) > 2 and names[1].startswith("Lines.Hot.")]
        if len(known) <= 0.95 * len(stacks):
            self.fail(f"{collections.Counter(map(tuple, stacks)).most_common(5)}\n{self.evidence(self.CALLER)}")
        # Whether there is room for a method's data or not, the stack is followed to the thread's start.
        started = [names for names in known if any(name.startswith(self.STARTS) for name in names)]
        if len(started) <= 0.95 * len(known):
            self.fail(f"{collections.Counter(map(tuple, known)).most_common(5)}\n{self.evidence(self.CALLER)}")
        by_caller = [names[2] for names in known if names[1].startswith(self.CALLER)]
        self.assertGreater(len(by_caller), 0.5 * len(stacks))
        right = [name for name in by_caller if name.startswith(self.OUTER)]
        self.assertGreater(len(right), 0.95 * len(by_caller), collections.Counter(by_caller).most_common(5))

    def check_rows(self):
        images = self.images()
        pushed = 0
        for image in images:
            begin = pushes_rbp_first(image)
            if begin is None:
                continue
            rows = frame_rows(image)
            self.assertEqual((rows[begin]["CFA"], rows[begin]["rbp"], rows[begin]["ra"]), ("rsp+8", "u", "c-8"), rows)
            self.assertEqual((rows[begin + 1]["CFA"], rows[begin + 1]["rbp"]), ("rsp+16", "c-16"), rows)
            pushed += 1
        self.assertGreater(pushed, len(images) // 4, images)

    def test_perf_has_the_callers_by_our_unwind_data(self):
        self.record()
        records = jitdump_records(self.path("x.jitdump"))
        self.assertGreater(records["load"], 3)
        self.assertEqual(records["unwind"], records["load"], "JIT-compiled and precompiled alike")
        self.check_callers()
        self.check_rows()
        # The code without unwind data: so it was that which told the callers.
        bare = self.path("bare.jitdump")
        subprocess.run([harness.AGENT, "convert", self.path("x.json"), "-o", bare], check=True, timeout=60)
        self.assertEqual(jitdump_records(bare)["unwind"], 0)
        self.assertEqual([names for names in self.stacks(bare) if len(names) > 1 and names[1].startswith(self.CALLER)], [])


class DotnetTest(harness.LiveTest):
    """A .NET process that nobody prepared, by perf and by clrsampler at the same time."""

    NEEDS = ("dotnet", "perf")
    VERSION = "10.0.15"
    METHOD = "Lines.Hot.Dear"

    def perf(self, *arguments):
        return subprocess.run(["perf", *arguments], capture_output=True, text=True, errors="replace", timeout=120, check=True).stdout

    def test_perf_has_our_names_and_lines(self):
        self.need_runtime(self.VERSION)
        folder = tempfile.mkdtemp(prefix="clrsampler-perf-")
        self.addCleanup(shutil.rmtree, folder)
        data, dump, named = (os.path.join(folder, name) for name in ("perf.data", "x.jitdump", "named.data"))
        with lines_live_test.Program(self.VERSION, {}) as target:
            pid = str(target.host_pid)
            with subprocess.Popen([harness.AGENT, "--quiet", "--pid", pid, "-d", "8s", "-F", "999", "-o", dump, "-o", os.path.join(folder, "x.json")]) as ours:
                # Later than ours in its beginning, which is enough: bodies count from there.
                self.perf("record", "-k", "mono", "-e", "cpu-clock", "-F", "999", "-g", "-p", pid, "-o", data, "--", "sleep", "6")
                self.assertEqual(ours.wait(timeout=60), 0)
        subprocess.run([TOOL, data, dump, "-o", named], check=True, timeout=120)
        ranges = jitdump_lines(dump)
        counts, whole = collections.Counter(), 0
        for line in self.perf("script", "-i", named, "-G", "-F", "ip,sym").splitlines():
            fields = line.split(None, 1)
            if len(fields) == 2 and fields[1].startswith(self.METHOD + "["):
                at = int(fields[0], 16)
                counts.update([next((text for begin, end, text in ranges if begin <= at < end), "none")])
            whole += len(fields) == 2
        self.assertGreater(sum(counts.values()), 0.7 * whole, "the method that works has its name")
        report = self.perf("report", "-i", named, "--stdio", "--no-children", "-g", "none", "--sort", "symbol,srcline")
        shares = collections.Counter()
        for share, line in re.findall(rf"([\d.]+)% +\[\.\] {re.escape(self.METHOD)}\[\w+\] +(\S+:\d+)", report):
            shares[line] += float(share)
        self.assertEqual(set(shares), set(counts), report)
        scale = sum(shares.values()) / sum(counts.values())
        for line, count in counts.items():
            self.assertAlmostEqual(shares[line], count * scale, delta=0.05, msg=report)
        hot = f"Program.cs:{line_truth.line_of('the hot line')}"
        self.assertEqual(counts.most_common(1)[0][0], hot)
        with open(os.path.join(folder, "x.json")) as file:
            profile = json.load(file)
        self.assertGreater(len(profile["code"]["frame"]), 3)


@unittest.skipUnless(platform.machine() == "x86_64", "the code of this test is for x86-64")
class PerfJitdumpTest(harness.LiveTest):
    NEEDS = ("perf",)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="clrsampler-perf-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_perf(self, *arguments):
        done = subprocess.run(["perf", *arguments], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def record(self, *options):
        """(address of the code, its pid); recordings are perf.data."""
        with subprocess.Popen([sys.executable, "-c", TARGET], stdout=subprocess.PIPE, text=True) as target:
            try:
                address = int(target.stdout.readline())
                self.run_perf("record", *options, "-e", "cpu-clock", "-F", "999", "-g", "-p", str(target.pid), "-o", self.path("perf.data"), "--", "sleep", "2")
            finally:
                target.kill()
        with open(self.path("x.jitdump"), "wb") as file:
            file.write(jitdump(target.pid, address))
        return address, target.pid

    def merge(self, recording="perf.data"):
        return subprocess.run([TOOL, self.path(recording), self.path("x.jitdump"), "-o", self.path("named.data")], capture_output=True, text=True, timeout=120)

    def test_perf_has_name_line_and_code_of_each_sample(self):
        address, _ = self.record("-k", "mono")
        done = self.merge()
        self.assertEqual(done.returncode, 0, done.stderr)
        named = self.path("named.data")
        report = self.run_perf("report", "-i", named, "--stdio", "--no-children", "-g", "none", "--sort", "symbol,srcline")
        shares = {line: float(share) for share, line in re.findall(rf"([\d.]+)% +\[\.\] {re.escape(NAME)} +(\S+:\d+)", report)}
        counts = {}
        for ip in re.findall(r"^\s*([0-9a-f]+)\s*$", self.run_perf("script", "-i", named, "-G", "-F", "ip"), re.M):
            offset = int(ip, 16) - address
            if 0 <= offset < len(CODE):
                counts[line_at(offset)] = counts.get(line_at(offset), 0) + 1
        whole = sum(counts.values())
        self.assertGreater(whole, 100)
        self.assertGreaterEqual(len(counts), 3, counts)
        self.assertEqual(set(shares), set(counts))
        # All samples are there; perf rounds to hundredths, and some are elsewhere.
        scale = sum(shares.values()) / whole
        for line, count in counts.items():
            self.assertAlmostEqual(shares[line], count * scale, delta=0.02, msg=report)
        self.assertGreater(sum(shares.values()), 80, report)
        text = self.run_perf("annotate", "-i", named, "--stdio", "-l", NAME)
        self.assertIn("sub ", text)
        self.assertRegex(text, r"Cart\.cs:11")

    def test_a_recording_by_another_clock_is_refused(self):
        self.record()
        done = self.merge()
        self.assertEqual(done.returncode, 1)
        self.assertIn("-k mono", done.stderr)

    def test_files_of_other_kinds_are_refused(self):
        for recording, dump, word in ((b"", b"", "jitdump"), (b"PERFILE2" + bytes(30), jitdump(1, 0), "perf.data"),
                                      (b"PERFILE2" + bytes(96), jitdump(1, 0), "no data"),
                                      (b"PERFILE2" + bytes(32) + struct.pack("<QQ", 90, 500) + bytes(48), jitdump(1, 0), "cut")):
            for name, content in (("a.data", recording), ("x.jitdump", dump)):
                with open(self.path(name), "wb") as file:
                    file.write(content)
            done = self.merge("a.data")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, f"^error: .*{word}")


if __name__ == "__main__":
    harness.main()
