#!/usr/bin/env python3
"""Sources that are too long or stand twice are found, and what is no function is not taken for one."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from check_structure import complaints, MAX_FILE_LINES, MAX_FUNCTION_LINES  # noqa: E402
from structure.functions import functions  # noqa: E402

SOURCE = """#include "a.h"
namespace clrsampler {
namespace {
// A brace in a comment: {
constexpr int kRows[] = {1, 2};
struct Row {
  int Twice() const { return 2 * value; }
  int value = 0;
};
const char* Text() { return "} not a brace"; }
}  // namespace

template <typename T>
absl::StatusOr<T> Reader<T>::Read(absl::string_view text,
                                  int limit) {
  const auto visit = [&](int x) {
    if (x > 1'000) return '}';
    return 'x';
  };
  for (int i = 0; i < limit; ++i) {
    visit(i);
  }
  return T{};
}

Reader::Reader(int limit) : limit_(limit), rows_{1, 2} {}
}  // namespace clrsampler
"""


def function_of(lines, name="Long"):
    return f"void {name}() {{\n" + "".join(f"  call{i}({name!r});\n" for i in range(lines - 2)) + "}\n"


class FunctionsTest(unittest.TestCase):
    def test_functions_have_their_lines(self):
        found = [(name, end - first + 1) for name, first, end in functions(SOURCE)]
        self.assertIn(("Twice", 1), found)
        self.assertIn(("Text", 1), found)
        self.assertIn(("Reader<T>::Read", 12), found)
        self.assertFalse([name for name, _ in found if name in ("visit", "kRows", "Row", "if", "for")])


class ComplaintsTest(unittest.TestCase):
    def complaints(self, *texts, **exceptions):
        return list(complaints([(f"userspace/{i}.cc", text) for i, text in enumerate(texts)], **exceptions))

    def test_small_sources_are_fine(self):
        self.assertEqual(self.complaints(SOURCE, function_of(MAX_FUNCTION_LINES)), [])

    def test_a_long_function_is_named(self):
        text = function_of(MAX_FUNCTION_LINES + 1)
        self.assertEqual(self.complaints("\n" + text), ["userspace/0.cc:2: Long has 61 lines, and 60 are the most"])
        self.assertEqual(self.complaints(text, longer_functions={"userspace/0.cc: Long": 61}), [])
        self.assertEqual(len(self.complaints(text, longer_functions={"userspace/1.cc: Long": 61})), 1)

    def test_options_and_tables_may_be_long(self):
        self.assertEqual(self.complaints(function_of(100, "DeclareRecordOptions")), [])

    def test_a_long_file_is_named(self):
        text = "".join(f"int a{i};\n" for i in range(MAX_FILE_LINES + 1))
        self.assertEqual(self.complaints(text), ["userspace/0.cc:1: the file has 501 lines, and 500 are the most"])

    def test_six_equal_lines_are_named_once(self):
        run = "".join(f"  a{i} = b{i}();\n" for i in range(8))
        found = self.complaints("void A() {\n" + run + "}\n", "void B() {\n\n  c();\n" + run + "}\n")
        self.assertEqual(found, ["userspace/0.cc:2: 6 lines are equal to those at userspace/1.cc:4"])
        five = "".join(run.splitlines(keepends=True)[:5])
        self.assertEqual(self.complaints("void A() {\n" + five + "}\n", "void B() {\n  c();\n" + five + "}\n"), [])

    def test_rows_of_tables_may_be_equal(self):
        rows = "const int a[] = {\n" + "".join(f"    {{{i}, 2}},\n" for i in range(8)) + "};\n"
        self.assertEqual(self.complaints(rows, rows.replace("a[]", "b[]")), [])


if __name__ == "__main__":
    unittest.main()
