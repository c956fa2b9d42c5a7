#!/usr/bin/env python3
"""The comparison of unwinders itself: it must notice each fault, or the test against ClrMD and gdb proves nothing."""
import json
import unittest

import unwinders

MAPS = """\
400000-401000 r-xp 00000000 08:01 11 /usr/bin/dotnet
500000-501000 r--p 00000000 08:01 12 /usr/lib/libc.so.6
501000-600000 r-xp 00001000 08:01 12 /usr/lib/libc.so.6
700000-800000 r-xp 00001000 08:01 13 /usr/lib/libcoreclr.so
900000-a00000 r-xp 00001000 08:01 14 /usr/share/dotnet/System.Private.CoreLib.dll
b00000-c00000 rwxp 00000000 00:01 15 /memfd:doublemapper (deleted)
d00000-e00000 rwxp 00000000 00:00 0
f00000-f02000 r-xp 00000000 00:00 0 [vdso]
"""
# Thread 7: libc, libcoreclr, two managed frames with a stub between them, libcoreclr, libc. Thread 8: native only.
OURS = {7: [(0x501010, "futex", "native"), (0x700010, "libcoreclr.so!0x10", "native"), (0x900010, "System.Threading.Thread.Sleep", "r2r"),
            (0xb00100, "[stub IL_STUB_PInvoke]", "jit"), (0xb00020, "Shapes.Program.Main", "jit"), (0x700020, "libcoreclr.so!0x20", "native"),
            (0x501020, "__libc_start_call_main", "native")],
        8: [(0x501030, "poll", "native"), (0x700030, "libcoreclr.so!0x30", "native"), (0x501040, "start_thread", "native")]}
CLRMD = "7\t501010\t10\truntime\t\tInlinedCallFrame\n7\t90000a\t10\tmanaged\tSystem.Threading.Thread\tSleep\n" \
        "7\tb00100\t18\tstub\t\tIL_STUB_PInvoke\n7\tb00020\t20\tmanaged\tShapes.Program\tMain\n"
GDB = "[New LWP 8]\nframe 7 0x501010 futex\nframe 7 0x700010 None\nframe 7 0x900010 None\nframe 7 0x1 None\n" \
      "frame 8 0x501030 poll\nframe 8 0x700030 None\nframe 8 0x501040 start_thread\nframe 8 0x501050 clone3\n"
EU_STACK = "PID 7 - process\nTID 7:\n#0  0x0000000000501010     futex - /usr/lib/libc.so.6\n#1  0x0000000000700010 - 1\n#2  0x0000000000900010\n" \
           "TID 8:\n#0  0x0000000000501030 poll\n#1  0x0000000000700030 - 1 Foo::bar\n#2  0x0000000000501040 - 1 start_thread\n#3  0x501050 - 1 clone3\n"


def ours(change=None):
    stacks = {tid: list(frames) for tid, frames in OURS.items()}
    if change:
        change(stacks)
    return unwinders.parse_ours("".join(json.dumps({"tid": tid, "frames": [{"ip": hex(ip), "name": name, "kind": kind, "how": "table"} for ip, name, kind in frames]})
                                        + "\n" for tid, frames in stacks.items()))


def managed(change=None):
    return unwinders.compare_managed(ours(change), unwinders.parse_clrmd(CLRMD))


def native(change=None, theirs=None):
    return unwinders.compare_native(ours(change), unwinders.parse_gdb(GDB) if theirs is None else theirs, unwinders.NativeCode(MAPS))


def replace(tid, at, ip=None, name=None):
    def change(stacks):
        old = stacks[tid][at]
        stacks[tid][at] = (old[0] if ip is None else ip, old[1] if name is None else name, old[2])
    return change


def remove(tid, at):
    return lambda stacks: stacks[tid].pop(at)


def insert(tid, at, frame):
    return lambda stacks: stacks[tid].insert(at, frame)


class UnwindersTest(unittest.TestCase):
    def test_equal(self):
        self.assertEqual(managed(), ([], 2))
        self.assertEqual(native(), ([], 5))
        self.assertEqual(native(theirs=unwinders.parse_eu_stack(EU_STACK)), ([], 5))

    def test_an_address_in_the_call_is_the_same_place(self):
        self.assertEqual(managed(replace(7, 4, ip=0xb0001f)), ([], 2))
        self.assertEqual(native(replace(8, 1, ip=0x70002f)), ([], 5))

    def test_the_outermost_function_may_be_shown(self):
        self.assertEqual(native(insert(8, 3, (0x501050, "clone3", "native"))), ([], 6))

    def test_notices_each_fault_of_managed_frames(self):
        main = (0xb00020, "Shapes.Program.Main", "jit")
        for change, what in ((remove(7, 4), "ends after 1 of 2"), (remove(7, 2), "managed frame 0"), (insert(7, 4, (0xb00080, "Shapes.X.Y", "jit")), "managed frame 0"),
                             (insert(7, 5, main), "managed frame 0"), (replace(7, 4, ip=0xb00021), "managed frame 1"),
                             (replace(7, 4, ip=0xb0001e), "managed frame 1"), (replace(7, 2, name="System.Threading.Thread.Join"), "managed frame 0"),
                             (lambda stacks: stacks.pop(7), "no such thread")):
            with self.subTest(what):
                findings, _ = managed(change)
                self.assertEqual([f.tid for f in findings], [7])
                self.assertIn(what, findings[0].what)

    def test_frames_that_a_helper_hides_from_clrmd(self):
        more = insert(7, 2, (0xb00060, "Shapes.Helped.Caller", "jit"))
        self.assertEqual(managed(more), ([], 2))

        def in_managed_code(stacks):
            more(stacks)
            del stacks[7][:2]

        findings, _ = managed(in_managed_code)
        self.assertIn("managed frame 0", findings[0].what)

        def at_the_root(stacks):
            del stacks[7][:2]
            stacks[7].insert(3, (0xb00020, "Shapes.Program.Main", "jit"))

        findings, _ = managed(at_the_root)
        self.assertIn("1 managed frames more", findings[0].what)

    def test_an_unwinder_that_is_lost(self):
        lost = unwinders.parse_gdb("frame 8 0x501030 poll\nframe 8 0x1 None\n")
        self.assertEqual(native(theirs=lost), ([], 1))

    def test_notices_each_fault_of_native_frames(self):
        def only_leaf(stacks):
            del stacks[7][1:]

        def no_managed(stacks):
            del stacks[7][2:]

        for change, tid, what in (
                (remove(7, 0), 7, "native frame 0"), (remove(7, 1), 7, "native frame 1"), (replace(7, 1, ip=0x700011), 7, "native frame 1"),
                (insert(7, 2, (0x700050, "x", "native")), 7, "is native"), (only_leaf, 7, "ends after 1 of 2"), (no_managed, 7, "ends where managed code"),
                (remove(8, 2), 8, "ends after 2 of 4"), (remove(8, 1), 8, "native frame 1"), (replace(8, 2, name="other"), 8, "ends after 3 of 4"),
                (lambda stacks: stacks[8].extend([(0x501050, "clone3", "native"), (0x501060, "y", "native")]), 8, "1 frames more"),
                (lambda stacks: stacks.pop(8), 8, "no such thread")):
            with self.subTest(what=what, tid=tid):
                findings, _ = native(change)
                self.assertEqual([f.tid for f in findings], [tid])
                self.assertIn(what, findings[0].what)

    def test_native_code(self):
        code = unwinders.NativeCode(MAPS)
        for ip, expected in ((0x400000, True), (0x401000, False), (0x500500, False), (0x7fffff, True), (0x900010, False), (0xb00010, False), (0xd00000, False),
                             (0xf01fff, True), (0, False)):
            self.assertEqual(ip in code, expected, hex(ip))
        for ip, expected in ((0x400000, False), (0x500500, False), (0x900010, True), (0xb00010, True), (0xd00000, True), (1, False)):
            self.assertEqual(code.other(ip), expected, hex(ip))

    def test_names(self):
        for one, other in (("System.Collections.Generic.List<int>.Add", "System.Collections.Generic.List`1[System.Int32].Add"), ("A.B.C", "A+B.C"),
                           ("A<B<C>, D>.E", "A`2[B`1[C],D].E")):
            self.assertEqual(unwinders.bare_name(one), unwinders.bare_name(other))
        self.assertNotEqual(unwinders.bare_name("A.B"), unwinders.bare_name("A.C"))

    def test_refuses_what_is_not_agreed(self):
        for text in ("x", "{}", '{"tid":1}', '{"tid":1,"frames":[{"ip":"zz","name":"","kind":"","how":""}]}', '{"tid":1,"frames":[{"ip":"0x1"}]}',
                     '{"tid":1,"frames":[]}\n{"tid":1,"frames":[]}'):
            with self.subTest(text), self.assertRaises(unwinders.BadOutput):
                unwinders.parse_ours(text)

    def test_standing_still(self):
        a, b = unwinders.parse_gdb(GDB), unwinders.parse_gdb(GDB.replace("501030", "501031"))
        self.assertTrue(unwinders.same_leaves(a, a))
        self.assertFalse(unwinders.same_leaves(a, b))


if __name__ == "__main__":
    unittest.main(verbosity=2)
