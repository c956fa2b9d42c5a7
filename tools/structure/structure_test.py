#!/usr/bin/env python3
"""A made-up source that keeps every rule, and changes that break one rule each."""
import pathlib
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from structure import rules  # noqa: E402
from structure.functions import Unbalanced, layout  # noqa: E402
from structure.rules import complaints  # noqa: E402
from structure.source import code_only, without_comments  # noqa: E402
from structure.threads import unchecked  # noqa: E402

SOURCE = """// A source. It says "{" and 'if (' in a comment.
#include <vector>

#define BEGIN {

namespace sample {
namespace {

constexpr int kRows[] = {
    1'000,
};
constexpr char kBrace = '{';

enum class Kind : int {
  kOne,
};

template <typename T, int n = (1 < 2)>
struct Box final : Base<T> {
  Box() : value_{1}, name_("}") {}
  explicit Box(int value)
      : value_(value) {
    Use(value);
  }
 public:
  bool operator==(const Box& other) const {
    return value_ == other.value_;
  }
  int value_{0};
};

const std::vector<Row>& Rows() {
  static const auto* rows = new std::vector<Row>{
      {"one", [](int value) { return value + 1; }},
  };
  return *rows;
}

constexpr std::array<bool, 3> kFlags = [] {
  return std::array<bool, 3>{};
}();

absl::Status Outer::Run(const std::vector<int>& values,
                        int most = 3) && {
  for (int value : values) Use(value, [&] { return R"(})"; });
  return absl::OkStatus();
}

}  // namespace
}  // namespace sample
"""

NAMES = [  # name, first line, last line, whether it is a table
    ("Box", 20, 20, False),
    ("Box", 21, 24, False),
    ("operator==", 26, 28, False),
    ("Rows", 32, 37, True),
    ("kFlags", 39, 41, True),
    ("Outer::Run", 43, 47, False),
]

KERNEL = """SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt)
{
	return 0;
}

__attribute__((noinline)) int walk(void)
{
	return 1;
}
"""


def statements(count, name="Use"):
    return "".join(f"  {name}({i});\n" for i in range(count))


def function(body, name="Long"):
    return f"void {name}() {{\n{body}}}\n"


def table(rows):
    return "const Row kRows[] = {\n" + "    {1, 2},\n" * rows + "};\n"


def returned_table(rows, end="  return *rows;\n"):
    cells = "".join(f"      {{{i}, 2}},\n" for i in range(rows))
    return function("  static const auto* rows = new Rows{\n" + cells + "  };\n" + end)


class LayoutTest(unittest.TestCase):
    def found(self, text):
        return [(f.name, f.first, f.last, f.is_table) for f in layout(code_only(text)).functions]

    def test_functions_are_found_with_their_lines(self):
        self.assertEqual(self.found(SOURCE), NAMES)

    def test_functions_of_the_kernel_side_are_found(self):
        self.assertEqual(self.found(KERNEL), [("on_switch", 1, 5, False), ("walk", 7, 10, False)])

    def test_initialisers_outside_of_functions_are_tables(self):
        self.assertEqual(layout(code_only(SOURCE)).tables, [(9, 11), (14, 16), (32, 37), (39, 41)])

    def test_a_brace_that_is_never_closed_is_an_error(self):
        self.assertRaises(Unbalanced, layout, "void F() {\n")

    def test_masks_keep_lines_in_place(self):
        for mask in (code_only, without_comments):
            self.assertEqual(mask(SOURCE).count("\n"), SOURCE.count("\n"))


class RulesTest(unittest.TestCase):
    def setUp(self):
        for name in ("FUNCTIONS_TO_BE_SPLIT", "FILES_TO_BE_SPLIT", "REPETITIONS_TO_BE_MERGED"):
            empty = unittest.mock.patch.object(rules, name, {})
            empty.start()
            self.addCleanup(empty.stop)

    def test_a_source_that_keeps_the_rules_is_fine(self):
        self.assertEqual(complaints({"a.cc": SOURCE, "b.c": KERNEL}), [])

    def test_a_function_over_60_lines_is_found(self):
        self.assertEqual(complaints({"a.cc": function(statements(58))}), [])
        self.assertEqual(complaints({"a.cc": function(statements(59))}), ["a.cc:1: Long has 61 lines, and 60 is the most"])

    def test_a_member_function_inside_a_class_is_found(self):
        text = "class A {\n public:\n" + function(statements(59), "Inside") + "};\n"
        self.assertEqual(complaints({"a.h": text}), ["a.h:3: Inside has 61 lines, and 60 is the most"])

    def test_lambdas_count_with_the_function_around_them(self):
        text = function("  const auto f = [] {\n" + statements(59) + "  };\n")
        self.assertEqual(complaints({"a.cc": text}), ["a.cc:1: Long has 63 lines, and 60 is the most"])

    def test_tables_may_be_longer(self):
        self.assertEqual(complaints({"a.cc": table(100)}), [])
        self.assertEqual(complaints({"a.cc": returned_table(100)}), [])

    def test_a_function_that_only_declares_options_may_be_longer(self):
        options = "".join(f'  app.add_option("--o{i}", config.o{i})\n      ->type_name("N");\n' for i in range(50))
        body = options + "  DeclareNames(app, config.names);\n"
        self.assertEqual(complaints({"a.cc": function(body)}), [])
        self.assertEqual(complaints({"a.cc": function(body + "  Use(config);\n")}), ["a.cc:1: Long has 104 lines, and 60 is the most"])

    def test_a_function_that_does_more_than_give_a_table_is_none(self):
        for end in ("  return rows->front();\n", "  Use(rows);\n  return *rows;\n", "  if (rows) Use(rows);\n"):
            with self.subTest(end):
                self.assertEqual(len(complaints({"a.cc": returned_table(100, end)})), 1)

    def test_a_file_over_500_lines_is_found(self):
        many = "".join(f"int value{i};\n" for i in range(500))
        self.assertEqual(complaints({"a.h": many, "a.js": many.replace("value", "other")}), [])
        self.assertEqual(complaints({"a.js": many + "int last;\n"}), ["a.js:1: the file has 501 lines, and 500 is the most"])

    def test_a_run_of_six_equal_lines_is_found_in_two_files(self):
        first = "int a;\n" + function(statements(6), "First")
        second = function("  // why\n\n" + statements(6).replace("  ", "      "), "Second")
        self.assertEqual(complaints({"a.cc": first, "b.cc": second}), ["b.cc:4: 6 lines stand in a.cc:3, too"])
        self.assertEqual(complaints({"a.cc": first, "b.cc": second.replace("Use(5)", "Use(6)")}), [])

    def test_a_run_in_one_file_is_found_once_and_as_a_whole(self):
        text = function(statements(9), "First") + function(statements(9), "Second")
        self.assertEqual(complaints({"a.cc": text}), ["a.cc:13: 9 lines stand in a.cc:2, too"])

    def test_lines_of_tables_and_long_literals_do_not_count_as_repeated(self):
        literal = 'constexpr char kText[] = R"(\n' + statements(20) + ')";\n'
        self.assertEqual(complaints({"a.cc": table(30), "b.cc": table(30)}), [])
        self.assertEqual(complaints({"a.cc": literal, "b.cc": literal}), [])

    def test_includes_and_braces_do_not_count(self):
        text = "".join(f'#include "{name}.h"\n' for name in "abcdefgh") + "}\n}\n}\n}\n}\n}\n"
        self.assertEqual(rules.meaningful_lines(text, []), [])

    def test_what_is_to_be_split_may_only_shrink(self):
        rules.FUNCTIONS_TO_BE_SPLIT = {("a.cc", "Long"): 70}
        shown = {lines: complaints({"a.cc": function(statements(lines - 2))}) for lines in (71, 70, 61, 60)}
        self.assertEqual(shown[71], ["a.cc:1: Long grew from 70 lines to 71: split it"])
        self.assertEqual(shown[70] + shown[61], [])
        self.assertEqual(shown[60], ["a.cc:1: Long keeps the rule now: take it off the list in tools/structure/rules.py"])

    def test_of_functions_with_one_name_the_longest_may_only_shrink(self):
        rules.FUNCTIONS_TO_BE_SPLIT = {("a.cc", "Long"): 70}
        self.assertEqual(complaints({"a.cc": function("  One();\n") + function(statements(60))}), [])

    def test_repetitions_in_the_list_may_only_shrink(self):
        files = {"a.cc": function(statements(8), "First"), "b.cc": function(statements(8), "Second")}
        rules.REPETITIONS_TO_BE_MERGED = {("a.cc", "b.cc"): 8}
        self.assertEqual(complaints(files), [])
        rules.REPETITIONS_TO_BE_MERGED = {("a.cc", "b.cc"): 7}
        self.assertEqual(complaints(files), ["b.cc:2: 8 lines stand in a.cc:2, too"])
        files["b.cc"] = KERNEL
        self.assertEqual(
            complaints(files), ["b.cc: has no lines of a.cc any more: take the pair off the list in tools/structure/rules.py"]
        )

    def test_what_is_gone_leaves_the_list(self):
        rules.FUNCTIONS_TO_BE_SPLIT, rules.FILES_TO_BE_SPLIT = {("a.cc", "Gone"): 70}, {"b.cc": 600}
        self.assertEqual(
            complaints({"a.cc": function(statements(3))}),
            [
                "b.cc: is not there: take it off the list in tools/structure/rules.py",
                "a.cc: has no Gone: take it off the list in tools/structure/rules.py",
            ],
        )


HEADER = "userspace/shop/cart.h"
CART = """// Main loop only.
class Cart {
 public:
  void Add(int price);

 private:
  int sum_ = 0;
%s};
"""
CART_SOURCE = """#include "shop/cart.h"
void Cart::Add(int price) {
%s  sum_ += price;
}
"""
CHECKER, CHECK = "  [[no_unique_address]] ThreadChecker main_loop_;\n", "  main_loop_.Check();\n"


class ThreadsTest(unittest.TestCase):
    def found(self, header, source=""):
        return unchecked({HEADER: header, "userspace/shop/cart.cc": source})

    def test_a_class_for_the_main_loop_needs_a_checker(self):
        self.assertEqual(self.found(CART % ""), [f"{HEADER}:1: says main loop only, and has no ThreadChecker"])
        self.assertEqual(self.found((CART % "").replace("Main loop only.", "A cart.")), [])

    def test_some_method_has_to_check(self):
        silent = [f"{HEADER}:1: has a ThreadChecker, and no method calls Check"]
        self.assertEqual(self.found(CART % CHECKER, CART_SOURCE % ""), silent)
        self.assertEqual(self.found(CART % CHECKER, CART_SOURCE % CHECK), [])

    def test_an_interface_needs_none(self):
        self.assertEqual(self.found("// Main loop only.\nclass Cart {\n public:\n  virtual void Add(int) = 0;\n};\n"), [])


if __name__ == "__main__":
    unittest.main()
