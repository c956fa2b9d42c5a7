#!/usr/bin/env python3
"""A made-up repository in which every mention is right, and one change after the other that makes one wrong."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from references.inventory import Inventory  # noqa: E402
from references.passages import COMMENT, DOCUMENT, MESSAGE, passages  # noqa: E402
from references.rules import complaints  # noqa: E402

REPOSITORY = {
    "CMakePresets.json": """{"configurePresets": [{"name": "release"}, {"name": "hidden", "hidden": true}], "buildPresets": [{"name": "release"}],
                             "testPresets": [{"name": "release"}]}""",
    "README.md": """# Title
[more](docs/usage.md#what-it-says) and [below](#a-part), [elsewhere](https://example.org/none.md)

## A part

See `userspace/clr/tailer.{h,cc}`, `clr/tailer`, `clr/*_tests.cc` or tests/unit/NAME.cc, userspace/FAMILY/NAME_tests.cc, docs/DATE-NAME.md; `/etc/none.h` is not ours, nor is `src/vm/none.h`.

```
cmake --preset release && cmake --build --preset release && ctest --preset release -L unit
sudo build/release/clrsampler top --once --pid 1 \\
  --lines 5 | flamegraph.pl --foreign
tools/test -R 'first_live|^second'
sudo python3 tests/e2e/first_live_test.py FirstTest.test_it
perf record --unknown -- clrsampler mip show --debug
```

`first_live_test_matrix`, `third_corpus` and `fourth_x_test` are tests, OneTest.IsOne and `ctest -R TwoTest.IsTwo`, too; `--pid` and `--shape` are options; the preset `release` is there; NAME stands for any in build/NAME and `cmake --preset NAME`.
""",
    "docs/usage.md": "# Usage\n\n## What it says\n\n`clrsampler --pid PID`, `clrsampler COMMAND --once`, `docker --rm`, and --hidden in prose.\n",
    "docs/other.md": "# Other\n",
    "docs/2026-11-28-other.md": "# Other\n",
    "userspace/clr/tailer.h": "// Reads what formats/parser.h parses; docs/usage.md says more.\n/* `clrsampler top --once` */\n",
    "userspace/clr/tailer.cc": 'Fail("no map", "clrsampler --pid PID, or docs/usage.md");  // "https://example.org"\n',
    "userspace/clr/all_tests.cc": "",
    "userspace/formats/parser.h": "",
    "userspace/cli/top.cc": 'app.add_option("--pid,-p"); app.add_flag("--once"); app.add_option(\n  "--lines"); app.add_flag("--hidden"); app.add_option("--debug");\n',
    "tools/packaging/generated/clrsampler.bash": """
    '')
      words='top -p --pid'
      case $previous in
    top)
      words='-p --pid --once --lines'
    'mip show')
      words='--debug'
""",
    "tools/shape": '#!/usr/bin/env bash\n# usage: shape [--shape]      as docs/usage.md says\n  --shape | -s) shape=1 ;;\n',
    "tools/test": "#!/usr/bin/env bash\n",
    "tools/check.py": '"""Reads docs/usage.md."""\n# and tests/e2e/first_live_test.py\ntext = "docs/none.md"\n',
    "tests/unit/one.cc": "TEST(OneTest, IsOne) {}\nTEST_F(TwoTest,\n       IsTwo) {}\n",
    "tests/e2e/first_live_test.py": "class FirstTest(unittest.TestCase):\n    def test_it(self):\n        pass\n",
    "tests/CMakeLists.txt": """# See README.md.
function(live_test name)
  add_test(NAME ${name} COMMAND ${name})
  add_test(NAME ${name}_matrix COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "unit;${ARG_LABELS}")
endfunction()
function(fuzz name)
  add_test(NAME ${name}_corpus COMMAND ${name})
endfunction()
live_test(first_live_test 3)
add_test(NAME second_test COMMAND second)
fuzz(third)
foreach(kind x y)
  add_test(NAME fourth_${kind}_test COMMAND fourth)
endforeach()
""",
}

# (file, what stands there, what is put in its place, the complaint)
DAMAGE = [
    ("README.md", "docs/usage.md#", "docs/use.md#", "README.md:2: no file docs/use.md"),
    ("README.md", "#what-it-says", "#what-it-said", "README.md:2: no heading docs/usage.md#what-it-said"),
    ("README.md", "(#a-part)", "(#no-part)", "README.md:2: no heading #no-part"),
    ("README.md", "tailer.{h,cc}", "tailer.{h,c}", "README.md:6: no file userspace/clr/tailer.c"),
    ("README.md", "`clr/tailer`", "`clr/finder`", "README.md:6: no file clr/finder"),
    ("README.md", "clr/*_tests.cc", "clr/*_benches.cc", "README.md:6: no file clr/*_benches.cc"),
    ("README.md", "tests/unit/NAME.cc", "tests/units/NAME.cc", "README.md:6: no file tests/units/NAME.cc"),
    ("README.md", "FAMILY/NAME_tests", "FAMILY/NAME_proof", "README.md:6: no file userspace/FAMILY/NAME_proof.cc"),
    ("README.md", "docs/DATE-NAME", "docs/of/DATE-NAME", "README.md:6: no file docs/of/DATE-NAME.md"),
    ("README.md", "cmake --preset release", "cmake --preset relaese", "README.md:9: no configure preset relaese"),
    ("README.md", "cmake --preset release", "cmake --preset hidden", "README.md:9: no configure preset hidden"),
    ("README.md", "--build --preset release", "--build --preset hidden", "README.md:9: no build preset hidden"),
    ("README.md", "ctest --preset release", "ctest --preset hidden", "README.md:9: no test preset hidden"),
    ("README.md", "-L unit", "-L unity", "README.md:9: no label unity"),
    ("README.md", "build/release/", "build/relaese/", "README.md:10: no build makes build/relaese/clrsampler"),
    ("README.md", "--once", "--one", "README.md:10: no option --one of clrsampler top"),
    ("README.md", "--lines 5", "--debug 5", "README.md:11: no option --debug of clrsampler top"),
    ("README.md", "|^second", "|^2nd", "README.md:12: no test ^2nd"),
    ("README.md", "FirstTest.test_it", "FirstTest.test_that", "README.md:13: no test FirstTest.test_that"),
    ("README.md", "FirstTest.test_it", "OtherTest", "README.md:13: no test first_live_test.py OtherTest"),
    ("README.md", "show --debug", "show --once", "README.md:14: no option --once of clrsampler mip show"),
    ("README.md", "first_live_test_matrix", "second_test_matrix", "README.md:17: no test second_test_matrix"),
    ("README.md", "third_corpus", "first_corpus", "README.md:17: no test first_corpus"),
    ("README.md", "fourth_x_test", "fourth_z_test", "README.md:17: no test fourth_z_test"),
    ("README.md", "OneTest.IsOne", "OneTest.IsTwo", "README.md:17: no test OneTest.IsTwo"),
    ("README.md", "-R TwoTest.IsTwo", "-R Two.*Three", "README.md:17: no test Two.*Three"),
    ("README.md", "`--shape`", "`--form`", "README.md:17: no option --form"),
    ("README.md", "the preset `release`", "the preset `debug`", "README.md:17: no configure preset debug"),
    ("docs/usage.md", "COMMAND --once", "COMMAND --twice", "docs/usage.md:5: no option --twice of clrsampler"),
    ("docs/usage.md", "and --hidden", "and --hiding", "docs/usage.md:5: no option --hiding"),
    ("userspace/clr/tailer.h", "formats/parser.h", "parser_of_maps.h", "userspace/clr/tailer.h:1: no file parser_of_maps.h"),
    ("userspace/clr/tailer.h", "docs/usage.md", "layout.md", "userspace/clr/tailer.h:1: no file layout.md"),
    ("userspace/clr/tailer.h", "top --once", "top --hide", "userspace/clr/tailer.h:2: no option --hide of clrsampler top"),
    ("userspace/clr/tailer.cc", "--pid PID", "--process PID", "userspace/clr/tailer.cc:1: no option --process of clrsampler"),
    ("userspace/clr/tailer.cc", "docs/usage.md", "docs/use.md", "userspace/clr/tailer.cc:1: no file docs/use.md"),
    ("tools/shape", "usage: shape [--shape]", "usage: shape [--form]", "tools/shape:2: no option --form"),
    ("tools/shape", "docs/usage.md", "docs/use.md", "tools/shape:2: no file docs/use.md"),
    ("tools/check.py", "Reads docs/usage.md", "Reads docs/use.md", "tools/check.py:1: no file docs/use.md"),
    ("tools/check.py", "first_live_test.py", "1st_live_test.py", "tools/check.py:2: no file tests/e2e/1st_live_test.py"),
    ("tests/CMakeLists.txt", "README.md", "READ.md", "tests/CMakeLists.txt:1: no file READ.md"),
    # Things that are mentioned go.
    ("CMakePresets.json", '"testPresets": [{"name": "release"}]', '"testPresets": []', "README.md:9: no test preset release"),
    ("userspace/cli/top.cc", "--hidden", "--concealed", "docs/usage.md:5: no option --hidden"),
    ("tests/CMakeLists.txt", "NAME second_test", "NAME another_test", "README.md:12: no test ^second"),
]


class ReferencesTest(unittest.TestCase):
    def test_right_mentions_are_right(self):
        self.assertEqual(complaints(Inventory(REPOSITORY)), [])

    def test_each_wrong_mention_is_found(self):
        for path, old, new, complaint in DAMAGE:
            with self.subTest(complaint):
                self.assertIn(old, REPOSITORY[path])
                self.assertEqual(complaints(Inventory({**REPOSITORY, path: REPOSITORY[path].replace(old, new, 1)})), [complaint])

    def test_mentions_of_a_file_that_is_gone(self):
        files = {path: text for path, text in REPOSITORY.items() if path != "docs/usage.md"}
        self.assertEqual(complaints(Inventory(files)), [f"{place}: no file docs/usage.md" for place in
                                           ("README.md:2", "tools/check.py:1", "tools/shape:2", "userspace/clr/tailer.cc:1", "userspace/clr/tailer.h:1")])


    def test_each_kind_of_notices_is_explained(self):
        files = {**REPOSITORY, "userspace/clr/finder.cc": 'a();\nnotices_.Add(\n    "late", "", "b");\nsay("torn", "c");\n', "docs/troubleshooting.md": "`late`\n"}
        self.assertEqual(complaints(Inventory(files)), ["userspace/clr/finder.cc:4: docs/troubleshooting.md does not have the kind torn"])


    def test_each_case_of_the_matrix_is_run(self):
        test = "class OneTest(unittest.TestCase):\n    @harness.in_matrix\n    def test_it(self):\n        pass\n"
        for declared, found in (("a_test 3 MATRIX", []), ("b_test 3 MATRIX FILE a_test OneTest", []), ("a_test 3 MATRIX TwoTest", [1]), ("a_test 3", [1])):
            files = {**REPOSITORY, "tests/e2e/a_test.py": test, "tests/e2e/CMakeLists.txt": f"clrsampler_live_test({declared})\n"}
            self.assertEqual(complaints(Inventory(files)), ["tests/e2e/a_test.py:1: no matrix runs the cases of OneTest" for _ in found])


class PassagesTest(unittest.TestCase):
    def test_a_document_is_one(self):
        self.assertEqual(list(passages("a.md", "# One\ntwo\n")), [(1, DOCUMENT, "# One\ntwo\n")])

    def test_comments_and_messages(self):
        text = 'a();\n// one\n  // two\nb("http://three");  /* four\n * five */\nchar c = \'"\';\nR"(// no)";\n'
        self.assertEqual(list(passages("userspace/a.cc", text)),
                         [(2, COMMENT, " one\n two"), (4, MESSAGE, "http://three"), (4, COMMENT, " four\n five ")])

    def test_only_the_program_has_messages(self):
        self.assertEqual(list(passages("tests/a.cc", 'a("one");  // two\n')), [(1, COMMENT, " two")])

    def test_python(self):
        text = '"""One\ntwo."""\ndef a():\n    "Three."\n    b = "no"  # four\n'
        self.assertEqual(list(passages("a.py", text)), [(1, COMMENT, '"""One\ntwo."""'), (4, COMMENT, '"Three."'), (5, COMMENT, " four")])

    def test_scripts(self):
        self.assertEqual(list(passages("tools/a", "#!/bin/sh\n# one\n# two\nb ${x#y} $# # three\n")), [(2, COMMENT, " one\n two"), (4, COMMENT, " three")])

    def test_data_says_nothing(self):
        self.assertEqual(list(passages("a.json", '"# one"')), [])


if __name__ == "__main__":
    unittest.main()
