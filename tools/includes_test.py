#!/usr/bin/env python3
"""Tests of check_includes."""
import unittest

from check_includes import DOCUMENT, complaints

TABLE = """
| folder | may include | what it is |
|---|---|---|
| `status` | | errors |
| `formats` | | bytes |
| `os` | | files |
| `formats/x64` | | instructions |
| `clr` | `os`, `formats/x64` | runtimes |
| `clr/memory` | `clr` | their memory |

Behind it: | `none` | `os` | x |
"""
FILES = {
    "os/file.h": "",
    "formats/byte_reader.h": "",
    "formats/x64/code.h": '#include "formats/byte_reader.h"\n#include "bpf/libbpf.h"\n',
    "clr/clr.cc": '#include "clr/clr.h"\n#include "os/file.h"\n#include "formats/x64/code.h"\n',
    "clr/clr.h": "",
    "clr/memory/memory.cc": '#include "clr/clr.h"\n',
    "status/status.h": "",
}


class IncludesTest(unittest.TestCase):
    def complaints(self, **changed):
        return complaints(TABLE, FILES | {path.replace("__", "/") + ".cc": text for path, text in changed.items()})

    def test_what_the_table_allows(self):
        self.assertEqual(self.complaints(clr__memory__more='#include "status/status.h"\n'), [])

    def test_what_it_does_not_allow(self):
        self.assertEqual(self.complaints(os__file='#include "clr/clr.h"\n'), ["os/file.cc: may not include clr/clr.h"])
        self.assertEqual(self.complaints(clr__more='#include "clr/memory/memory.cc"\n'), ["clr/more.cc: may not include clr/memory/memory.cc"],
                         "a folder is not what lies in it")
        self.assertEqual(self.complaints(clr__memory__more='#include "formats/x64/code.h"\n'), ["clr/memory/more.cc: may not include formats/x64/code.h"])

    def test_a_right_that_nothing_uses(self):
        self.assertEqual(complaints(TABLE, FILES | {"clr/clr.cc": '#include "os/file.h"\n'}), [f"{DOCUMENT}: clr includes nothing of formats/x64"])

    def test_a_folder_without_a_row(self):
        self.assertEqual(self.complaints(none__file=""), ["none/file.cc: its folder is not in the table"])

    def test_a_document_without_the_table(self):
        self.assertEqual(complaints("", FILES), [f"{DOCUMENT} has no table of folders"])


if __name__ == "__main__":
    unittest.main()
