#!/usr/bin/env python3
"""The comparison of names finds what it is there to find. Needs no target."""
import random
import struct
import unittest

import names_oracle

ROWS = """\
7f0000001010	jit	memory	7f0000001000	System.Collections.Generic.Dictionary`2+Entry[System.__Canon,System.Int32]	ToString	System.Private.CoreLib	6000123	Optimized	System.Collections.Generic.Dictionary`2+Entry[System.__Canon,System.Int32]::ToString
7f0000002010	jit	memory	7f0000002000	Zoo.Generics	Same[System.String]	zoo	6000007	QuickJitted	Zoo.Generics::Same[System.String]
7f0000003010	r2r	memory	7f0000003000	Zoo.Counter	Zoo.ICounter<System.Int32,System.String>.Count	zoo	6000008	PreJIT	Zoo.Counter::Zoo.ICounter<System.Int32,System.String>.Count
7f0000004010	jit	memory	7f0000004000	dynamicClass	IL_STUB_PInvoke	zoo	0	Optimized	[dynamic] IL_STUB_PInvoke
7f0000005000	stub	memory	0				0		[stub precode]
7f0000006010	jit	none	0				0		[jit: changed while read at 7f0000006000]
"""
CLRMD = """\
7f0000001010	jit	System.Collections.Generic.Dictionary`2+Entry[System.__Canon,System.Int32]	ToString	System.Private.CoreLib.dll	6000123	7f0000001000	40	1	text
7f0000002010	jit	Zoo.Generics	Same[System.String]	zoo.dll	6000007	7f0000009000	40	1	text
7f0000003010	r2r	Zoo.Counter	Zoo.ICounter<System.Int32,System.String>.Count	zoo.dll	6000008	7f0000003000	40	1	text
7f0000004010	jit	ILStubClass	IL_STUB_PInvoke	zoo.dll	6000000	7f0000004000	40	0	text
7f0000005000	jit	Zoo.Generics	Same[System.String]	zoo.dll	6000007	7f0000009000	40	1	text
7f0000006010	none				0	0	0	1	
"""


def jitdump(*methods):
    data = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 0, 0)
    for index, (address, size, name) in enumerate(methods):
        text = name.encode() + b"\0"
        data += struct.pack("<IIQIIQQQQ", 0, 56 + len(text) + size, index, 1, 1, address, address, size, index) + text + bytes(size)
    return data


class Altered(unittest.TestCase):
    def compare(self, rows=ROWS, clrmd=CLRMD):
        return names_oracle.Comparison(names_oracle.parse_rows(rows), names_oracle.clrmd_truths(clrmd))

    def test_what_agrees_is_not_reported(self):
        result = self.compare()
        self.assertEqual(result.findings(), [])
        self.assertEqual((result.equal, result.generic, sum(result.unnamed.values())), (4, 2, 1))
        self.assertEqual(list(result.unnamed), ["[jit: changed while read at N]"])

    def test_each_altered_column_is_found(self):
        for column, old, new in (
                ("type", "\tSystem.Collections.Generic.Dictionary`2+Entry[System.__Canon,System.Int32]\t",
                 "\tSystem.Collections.Generic.Dictionary`2+Entry[System.__Canon,System.Int64]\t"),
                ("type", "\tZoo.Counter\t", "\tZoo.Counters\t"),
                ("method", "\tSame[System.String]\t", "\tSame[System.Object]\t"),
                ("method", "\tSame[System.String]\t", "\tSame\t"),
                ("method", "\tZoo.ICounter<System.Int32,System.String>.Count\t", "\tZoo.ICounter<System.Int32,System.Object>.Count\t"),
                ("method", "\tIL_STUB_PInvoke\t", "\tIL_STUB_ReversePInvoke\t"),
                ("token", "\t6000123\t", "\t6000124\t"),
                ("module", "\tSystem.Private.CoreLib\t", "\tSystem.Linq\t"),
                ("start", "\t7f0000001000\t", "\t7f0000001008\t")):
            with self.subTest(column=column, new=new.strip()):
                self.assertEqual(ROWS.count(old), 1)
                result = self.compare(rows=ROWS.replace(old, new))
                self.assertEqual([columns for columns, _, _ in result.disagreements], [[column]], result.findings())

    def test_a_precompiled_stub_that_resumes_is_named_after_its_method(self):
        stub = "ILStubClass\tIL_STUB_AsyncResume"
        resumed = CLRMD.replace("Zoo.Counter\tZoo.ICounter<System.Int32,System.String>.Count", stub)
        result = self.compare(clrmd=resumed)
        self.assertEqual((result.findings(), result.equal, result.resuming), ([], 3, 1))
        self.assertEqual(len(self.compare(clrmd=resumed.replace("IL_STUB_AsyncResume", "IL_STUB_PInvoke")).disagreements), 1)
        compiled = self.compare(clrmd=CLRMD.replace("Zoo.Generics\tSame[System.String]\tzoo.dll\t6000007\t7f0000009000", stub + "\tzoo.dll\t0\t7f0000002000", 1))
        self.assertEqual(len(compiled.disagreements), 1, "what is compiled at run time has the stub's own name")
        self.assertEqual(len(self.compare(rows=ROWS.replace("7f0000003000", "7f0000003004"), clrmd=resumed).disagreements), 1)

    def test_a_body_called_a_stub_is_found(self):
        result = self.compare(clrmd=CLRMD.replace("7f0000005000\tjit\tZoo.Generics\tSame[System.String]\tzoo.dll\t6000007\t7f0000009000",
                                                  "7f0000005000\tjit\tZoo.Generics\tSame[System.String]\tzoo.dll\t6000007\t7f0000005000"))
        self.assertEqual([columns for columns, _, _ in result.disagreements], [["kind"]])

    def test_a_silent_oracle_is_counted(self):
        result = self.compare(clrmd=CLRMD.replace("7f0000002010", "7f0000002011"))
        self.assertEqual(dict(result.silent), {"jit": 1})
        self.assertEqual(result.equal, 3)

    def test_output_in_another_form_is_refused(self):
        for old, new in (("\tPreJIT\t", "\t"), ("7f0000001010\t", "no number\t"), ("\tr2r\t", "\tR2R\t"), ("\t7f0000003000\t", "\t7f0000003020\t"),
                         ("[stub precode]", ""), ("[stub precode]", "stub precode")):
            with self.subTest(new=new), self.assertRaises(names_oracle.BadOutput):
                names_oracle.parse_rows(ROWS.replace(old, new))

    def test_the_first_line_may_name_the_columns(self):
        rows = names_oracle.parse_rows("#address\tkind\tsource\ttype\tmethod\tmodule\ttext\n7f0000001010\tjit\tmemory\tA.B\tC\tm\tA.B::C\n")
        self.assertEqual([(r.address, r.type, r.method, r.start, r.token) for r in rows], [(0x7f0000001010, "A.B", "C", 0, 0)])
        with self.assertRaises(names_oracle.BadOutput):
            names_oracle.parse_rows("#address\tkind\tsource\ttype\tmodule\ttext\n")

    def test_jitdump_lines(self):
        truths = names_oracle.JitdumpTruths(jitdump(
            (0x1000, 0x40, "instance !!0 [zoo] Zoo.Outer`1+Inner`1[System.__Canon,System.Int32]::Same(!!0,int32)[QuickJitted]"),
            (0x2000, 0x40, r"class [System.Runtime]System.Func`2<int32,int32> [zoo] Zoo.<a\,b>d__1::Zoo.I<A,B>.M(object)[PreJIT]"),
            (0x2020, 0x40, "void [zoo] dynamicClass::IL_STUB_PInvoke(int32[],Zoo.Shapes/Compare /* MT: 0x7f56bbbd7370 */)[Optimized]"),
            (0x3000, 0x400, "stub ReportStubBlock<MethodCallThunk>")))
        truth = truths.get(0x1010)
        self.assertEqual((truth.type, truth.method, truth.module), ("Zoo.Outer`1+Inner`1[System.__Canon,System.Int32]", "Same", "zoo"))
        row = names_oracle.Row(0x1010, "jit", "memory", 0x1000, truth.type, "Same[System.String]", "zoo", 0, "", "t")
        self.assertEqual(names_oracle.differences(row, truth), [])
        self.assertEqual(names_oracle.differences(row._replace(start=0x1004), truth), ["start"])
        self.assertIsNone(truths.get(0x2010), "replaced by a later record that overlaps it")
        self.assertEqual(truths.get(0x2030).type, "dynamicClass")
        self.assertIsNone(truths.get(0x3010))
        drawn = truths.draw(300, random.Random(1))
        self.assertEqual({truths.get(address).start for address in drawn}, {0x1000, 0x2020})
        self.assertEqual(names_oracle.spelled(names_oracle.truth_of_line(r"void [zoo] Zoo.<a\,b>d__1::M()[PreJIT]", 0, 1).type), "Zoo.<a,b>d__1")

    def test_a_jitdump_that_breaks_off_is_refused(self):
        with self.assertRaises(names_oracle.BadOutput):
            names_oracle.JitdumpTruths(jitdump((0x1000, 64, "void [a] B::C()[PreJIT]"))[:-1])


if __name__ == "__main__":
    unittest.main()
