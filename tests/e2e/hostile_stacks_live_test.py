#!/usr/bin/env python3
"""Stacks made to mislead: each run ends in time and in bounded memory. Frames that are made up are not shown as if they were sure.

tests/apps/garbage burns CPU time in functions whose frames are full of return addresses of functions that never ran (decoys), of pairs that look
like frames, and of cycles, with anything in the frame pointer. With unwind data no decoy may be shown at all; without, no stack with a decoy may look
whole. Then the library's unwind data lies, or the library is replaced on disk while it is mapped.
"""
import os
import shutil
import struct
import tempfile

import folded
import harness

GARBAGE = os.path.join(os.path.dirname(harness.AGENT), "tests", "apps", "garbage")
FREQUENCY = 997
CPU_SECONDS = 0.6
SLACK = 20
RSS_LIMIT = 128 << 20
MARKS = ("[caller may be missing]", "[unwind data contradicted", "[deeper than the limit")


class Elf:
    """Just enough of a 64-bit little-endian ELF image to find its unwind tables and change them."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = bytearray(f.read())
        table, = struct.unpack_from("<Q", self.data, 40)
        size, count, names = struct.unpack_from("<HHH", self.data, 58)
        headers = [struct.unpack_from("<IIQQQQ", self.data, table + i * size) for i in range(count)]
        strings = headers[names][4]
        self.sections = {}
        for name, _, _, address, offset, length in headers:
            end = self.data.index(b"\0", strings + name)
            self.sections[self.data[strings + name:end].decode()] = (address, offset, length)

    def entries(self):
        """(offset in the file, length, is a CIE) of each entry of .eh_frame."""
        _, offset, size = self.sections[".eh_frame"]
        at = offset
        while at + 8 <= offset + size:
            length, kind = struct.unpack_from("<II", self.data, at)
            if length == 0:
                return
            yield at, length, kind == 0
            at += 4 + length

    def fdes(self):
        return [(at, length) for at, length, is_common in self.entries() if not is_common]

    def put(self, at, form, *values):
        struct.pack_into("<" + form, self.data, at, *values)


def endless(elf):
    for at, _ in elf.fdes():
        elf.put(at, "I", 0xFFFFFFF0)


def length_of_64_bits(elf):
    for at, _ in elf.fdes():
        elf.put(at, "IQ", 0xFFFFFFFF, 1 << 63)


def overlapping(elf):
    for at, _ in elf.fdes():
        elf.put(at + 12, "I", 0x7FFFFFFF)  # all functions reach to the end of the image and beyond


def its_own_common_entry(elf):
    for at, _ in elf.fdes():
        elf.put(at + 4, "I", 4)  # counted back from here: the FDE itself


def endless_programs(elf):
    for at, length in elf.fdes():
        elf.data[at + 17:at + 4 + length] = b"\x0a" * (length - 13)  # DW_CFA_remember_state, over and over


def lying_rows(elf):
    for at, length in elf.fdes():
        elf.data[at + 17:at + 4 + length] = (b"\x0c\x06\x00" + b"\0" * length)[:length - 13]  # CFA = rbp + 0


def count_of_all_ones(elf):
    _, offset, _ = elf.sections[".eh_frame_hdr"]
    elf.put(offset + 8, "I", 0xFFFFFFFF)


def one_function_for_all(elf):
    _, offset, _ = elf.sections[".eh_frame_hdr"]
    count, = struct.unpack_from("<I", elf.data, offset + 8)
    for i in range(count):
        elf.data[offset + 12 + 8 * i:offset + 20 + 8 * i] = elf.data[offset + 12:offset + 20]


def unsorted(elf):
    _, offset, _ = elf.sections[".eh_frame_hdr"]
    count, = struct.unpack_from("<I", elf.data, offset + 8)
    table = [bytes(elf.data[offset + 12 + 8 * i:offset + 20 + 8 * i]) for i in range(count)]
    elf.data[offset + 12:offset + 12 + 8 * count] = b"".join(reversed(table))


LIES = (endless, length_of_64_bits, overlapping, its_own_common_entry, endless_programs, lying_rows, count_of_all_ones, one_function_for_all, unsorted)


class HostileStacksTest(harness.LiveTest):
    @classmethod
    def check_needs(cls):
        super().check_needs()
        if not os.path.exists(os.path.join(GARBAGE, "garbage")):
            raise harness.Missing(f"no program at {GARBAGE}/garbage; build it")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.library = os.path.join(self.folder, "libgarbage.so")
        shutil.copy(os.path.join(GARBAGE, "libgarbage.so"), self.library)

    def run_on(self, prefix, before_sampling=None):
        """The result of a recording of `prefix`_work, checked for what holds for every one."""
        with harness.Target([os.path.join(GARBAGE, "garbage"), self.library, prefix]) as target:
            if before_sampling:
                before_sampling()
            result, _ = harness.record_window(target, CPU_SECONDS, FREQUENCY)
        profile = self.check_result(result, minimum_samples=int(0.8 * CPU_SECONDS * FREQUENCY))
        self.assertLess(result.stats["self"]["peak_rss_bytes"], RSS_LIMIT, result)
        self.assertLess(result.stats["self"]["cpu_seconds"], 2 * harness.slowness(), result)
        # A recording that hangs after its end shows here.
        self.assertLess(result.seconds, result.stats["duration_seconds"] + SLACK, result)
        return result, profile

    @staticmethod
    def stacks_with(profile, prefix):
        return [(frames, count) for frames, count in profile.stacks if any(folded.bare(frame).startswith(prefix) for frame in frames)]

    def test_with_unwind_data_no_garbage_is_shown(self):
        result, profile = self.run_on("honest")
        self.assertEqual(self.stacks_with(profile, "decoy_"), [])
        marked = [frames for frames, _ in profile.stacks if any(frame.startswith(MARKS) for frame in frames)]
        self.assertEqual(marked, [])
        whole = sum(count for frames, count in self.stacks_with(profile, "honest_") if "main" in map(folded.bare, frames))
        self.assertGreater(whole, 0.99 * profile.total, result)
        self.assertGreaterEqual(result.stats["stacks"]["complete"], 0.99 * profile.total, result)

    def test_without_unwind_data_garbage_is_never_sure(self):
        result, profile = self.run_on("blind")
        made_up = self.stacks_with(profile, "decoy_")
        self.assertGreater(sum(count for _, count in made_up), 0.2 * profile.total, "the garbage misleads nobody: this test proves nothing")
        sure = [frames for frames, _ in made_up if not any(frame.startswith(MARKS) for frame in frames) and self.reaches_start(frames)]
        self.assertEqual(sure, [])
        unmarked = sum(count for frames, count in made_up if not any(frame.startswith(MARKS) for frame in frames))
        self.assertLessEqual(unmarked, result.stats["stacks"]["broken"] + result.stats["stacks"]["truncated"], result)

    @staticmethod
    def reaches_start(frames):
        return any(folded.bare(frame) in ("_start", "clone3", "__libc_start_main") for frame in frames)

    def test_unwind_data_that_lies(self):
        clean = Elf(self.library)
        self.assertGreater(len(clean.fdes()), 5)
        for lie in LIES:
            with self.subTest(lie.__name__):
                elf = Elf(os.path.join(GARBAGE, "libgarbage.so"))
                lie(elf)
                self.assertNotEqual(elf.data, clean.data)
                with open(self.library, "wb") as f:
                    f.write(elf.data)
                self.run_on("honest")

    def test_an_image_that_was_replaced_is_read_as_it_was(self):
        def replace():
            elf = Elf(self.library)
            lying_rows(elf)
            with open(self.library + ".new", "wb") as f:
                f.write(elf.data)
            os.rename(self.library + ".new", self.library)
        result, profile = self.run_on("honest", before_sampling=replace)
        self.assertEqual(self.stacks_with(profile, "decoy_"), [])
        self.assertGreaterEqual(result.stats["stacks"]["complete"], 0.99 * profile.total, result)


if __name__ == "__main__":
    harness.main()
