#!/usr/bin/env python3
"""The folded checker itself: it must accept what is right and notice each fault, or the live tests prove nothing."""
import unittest

import folded

CLEAN = ("app;Main;Shop.Order.Total_[j] 7\n"
         "app;Main;Shop.Order.Total_[j];do_syscall_64_[k];vfs_read_[k] 2\n"
         "app;libcoreclr.so!0x3d0b60 12\n").encode()


class CheckerTest(unittest.TestCase):
    def test_accepts_clean_text(self):
        self.assertEqual(folded.check(CLEAN), [])
        self.assertEqual(folded.check(b""), [])

    def test_notices_each_fault(self):
        for data, fault in (
                (b"app;a 1", "line end"), (b"app;a  1\n", "white space"), (b"app;a\n", "count"), (b"app;a 0\n", "count"),
                (b"app;a 1.5\n", "count"), (b"app;;a 1\n", "empty"), (b"app;a 12 3\n", "number"), (b"app;Foo 42_[j] 3\n", "number"),
                (b"app;Foo 4.5;b 3\n", "number"), (b"app;a\x07 1\n", "control"), (b"app;a\x7f 1\n", "control"), (b"app;a\r 1\n", "control"),
                (b"app;\xff 1\n", "UTF-8"), (b"app;b 1\napp;a 1\n", "sorted"), (b"app;a 1\napp;a 2\n", "twice"),
                (b"app;a_[w] 1\n", "suffix"), (b"app;k_[k];u 1\n", "above a kernel"), (b"my app;a 1\n", "command name"),
                (b"app;[unknown] 1\n", "why"), (b"app;[unknown]_[k] 1\n", "why"), (b"app;" + b"x" * 2000 + b" 1\n", "longer"),
                (b"app;a  b 1\n", "two spaces"), (b"app; a 1\n", "white space"), (b"app;a\n\n", "count"), (b"app;\xc2\x85 1\n", "control")):
            with self.subTest(data=data[:40]):
                self.assertTrue(any(fault in f for f in folded.check(data)), folded.check(data))

    def test_notices_each_fault_of_a_difference(self):
        self.assertEqual(folded.check_difference(b"app;A.B_[j] 0 7\napp;A.B_[j];c 12 0\n"), [])
        for data, fault in ((b"app;a 1\n", "before after"), (b"app;a 0 0\n", "before after"), (b"app;a 1 2.5\n", "before after"),
                            (b"app;a 1 -2\n", "before after"), (b"app;a 01 2\n", "before after"), (b"app;a 1  2\n", "before after"),
                            (b"app;a 1 2 3\n", "number"), (b"app;a 1 2", "line end"), (b"app;b 1 1\napp;a 1 1\n", "sorted"),
                            (b"app;a 1 1\napp;a 2 2\n", "twice"), (b"app;a\t1 1\n", "before after"), (b"app;Foo 4;b 1 1\n", "number")):
            with self.subTest(data=data):
                self.assertTrue(any(fault in f for f in folded.check_difference(data)), folded.check_difference(data))

    def test_reads_a_difference_as_flamegraph_does(self):
        data = b"app;A.B 3 7\napp;c 0 1\n"
        self.assertEqual(folded.flamegraph_rows(data), [(("app", "A.B"), 3, 7), (("app", "c"), 0, 1)])
        self.assertEqual(folded.parse_difference(data), [(("app", "A.B"), 3, 7), (("app", "c"), 0, 1)])

    def test_what_a_thread_does_for_the_runtime_is_no_missing_name(self):
        for role in ("[gc gen0 blocking]", "[gc gen2]", "[gc background]", "[suspending threads]", "[jit Shop.Order..ctor OptimizedTier1]"):
            self.assertTrue(folded.is_role(role) and not folded.is_unnamed(role), role)
        for frame in ("[jit: the method was gone before it could be read]_[j]", "[gc gen3]", "[truncated]"):
            self.assertTrue(folded.is_unnamed(frame) and not folded.is_role(frame), frame)

    def test_counts_named_and_unnamed_managed_frames(self):
        profile = folded.parse(b"app;A.B_[j];[jit: no map; x]_[j] 3\n".replace(b"map; x", b"map: x"))
        self.assertEqual(profile.managed_unnamed(), (3, 3))
        self.assertEqual(profile.total, 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
