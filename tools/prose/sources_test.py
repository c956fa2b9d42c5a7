#!/usr/bin/env python3
"""A made-up program in which every text is plain, and one change after the other that makes one wrong."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from prose.source_comments import comments, hashed_comments, markup_comments, program_comments, python_comments  # noqa: E402
from prose.messages import messages  # noqa: E402
from prose.page_texts import texts  # noqa: E402
from prose.sources import complaints, means  # noqa: E402

HEADER = """// Reads a file.
//
//   Reader     of what is in it, whoever wrote that
//   Writer     which nobody asks
//  - It has items
//    of two lines.
#ifndef SHOP_H_
#define SHOP_H_

/* A block. */
/*
 * Two lines
 * of one.
 */
// NOLINTNEXTLINE
int a;  // of this nothing is asked
  // Indented. Another one.
  int b;

#endif
"""
MESSAGES = r"""// Comments are no messages, "and of what they quote none is".
#include "of/a/file.h"
constexpr char kHint[] = "make room, "  // of this line neither
                         "and try again";
constexpr Row kRows[] = {{kA, "shop_total", "process, pid", "Samples that were lost."}};
absl::Status Read(char quote = '"') {
  return WithHint(absl::NotFoundError(absl::StrCat("the file ", path, " of process ", pid, " is gone: ", why)),
                  absl::StrCat("look", many ? "" : " for another one", " in the folder ", Folder("of the folder that is"), "."));
}
app.add_option("--rows", rows, any ? "show so many rows\nof a table" : "show no table");
app.footer("Examples:\n"
           "  clrsampler top        what the host does now\n"
           "of it there is more.");
const char* sql = "SELECT of, what FROM them WHERE it is";
absl::StrAppend(&text, "and so ", it, R"( says "it" too)");
Say("", "two words", "\x1b[1m", name + " is not there: " + reason);
"""
PAGE = r"""// Comments are no texts of a page.
const TEXTS = {a: 'this is a text', b: `${count} of them \u00b7 are here`, c: "two words"};
export function Panel({a}) {
  if (a > 1 && a < 3) return <p class="panel">The panel shows {a.map((b) => text(b)).join(', ')} and
    all <b>that</b> is in it.</p>;
  return <ul>{a.map((b) => <li key={b}>Each has {b} of these.</li>)}</ul>;
}
"""
SCRIPT = '''#!/usr/bin/env python3
"""Sells things.

usage: sell THING      of which there are some

  THING    whose name it has
"""
# The things
#   of a table
TEXT = """
# Of this string nothing is asked.
"""


class Shop:
    """A shop."""

    def sell(self):  # of this line neither
        """A thing that was sold.

        It is gone."""
        # noqa: of the linter
        # Two lines
        # of one.
'''
BUILD = """# Builds the shop.
add_shop(a  # of this line nothing is asked
  # Indented. Another one.
  b)
"""
PROJECT = """<Project>
  <!-- Runs the shop. -->
  <Shop />  <!-- of this line nothing is asked -->
  <!--
    Two lines
    of one.
  -->
</Project>
"""
MODULE = """/**
 * Sells a thing.
 * @param {{name: string, price: {value: number}}} thing  every one that is there
 *     or is not
 * @param {object} events
 *   sold(thing)  whose thing it was
 * @param {string} [buyer]
 * @returns {number} of all things that were sold
 */
export function sell(thing, buyer) {}
"""
LONG = " ".join(["word"] * 36)
# Names that are no files of ours.
USERSPACE, BPF, TESTS, TOOLS = "userspace", "bpf", "tests", "tools"
SHOP_H, SHOP_CC, SHOP_PAGE, SHOP_BPF = f"{USERSPACE}/shop/shop.h", f"{USERSPACE}/shop/shop.cc", f"{USERSPACE}/shop/page/src/panel.jsx", f"{BPF}/shop.bpf.h"
SHOP_TEST = f"{TESTS}/unit/shop/shop_test.cc"
SHOP_PY, SHOP_TOOL, SHOP_SHELL, SHOP_NOTE = f"{TESTS}/e2e/shop.py", f"{TOOLS}/shop", f"{TOOLS}/kernel/sell", f"{TOOLS}/note"
SHOP_CMAKE, SHOP_CS, SHOP_PROJECT = f"{TESTS}/shop/CMakeLists.txt", f"{TESTS}/apps/shop/Shop.cs", f"{TESTS}/apps/shop/shop.csproj"
SHOP_MODULE, SHOP_STYLE = f"{TESTS}/page/shop.mjs", f"{USERSPACE}/shop/page/shop.css"
FILES = {SHOP_TEST: HEADER, SHOP_H: HEADER, SHOP_CC: MESSAGES, SHOP_PAGE: PAGE, SHOP_BPF: HEADER, SHOP_PY: SCRIPT, SHOP_TOOL: SCRIPT,
         SHOP_SHELL: f"#!/bin/sh\n{BUILD}", SHOP_NOTE: "# Of a text that is no program\n", SHOP_CMAKE: BUILD, SHOP_CS: HEADER, SHOP_PROJECT: PROJECT,
         SHOP_MODULE: MODULE, SHOP_STYLE: "/* Looks.\n   Colours. */\n"}

# (file, what stands there, what is put in its place, the line, how the complaint begins)
DAMAGE = [
    (SHOP_TEST, "Reads a file.", "What a file has.", 1, "begins with What: "),
    (SHOP_BPF, "Reads a file.", "What a file has.", 1, "begins with What: "),
    (SHOP_BPF, "A block.", "Of a block.", 10, "begins with Of: "),
    (SHOP_BPF, "Two lines", "Which lines", 12, "begins with Which: "),
    (SHOP_BPF, "Another one.", f"Another {LONG}.", 17, "37 words: "),
    (SHOP_BPF, "It has items", "Whose items", 5, "begins with Whose: "),
    (SHOP_BPF, "Reads a file.", "Reads for a process who asks.", 1, 'a program is not "process who": '),
    (SHOP_BPF, "Reads a file.", "Reads a file; who is slow waits.", 1, 'a program is not "; who": '),
    (SHOP_BPF, "Reads a file.", "Reads whoever asks.", 1, 'a program is not "whoever": '),
    (SHOP_BPF, "A block.", "A block that was mended.", 10, '"was mended" tells history: '),
    (SHOP_BPF, "A block.", "Until now a block.", 10, '"Until now" tells history: '),
    (SHOP_BPF, "A block.", "It used to block.", 10, '"used to" tells history: '),
    (SHOP_BPF, "A block.", "It no longer blocks.", 10, '"no longer" tells history: '),
    (SHOP_BPF, "A block.", "Nothing that is asked for is there.", 10, '"asked for is" tells history: '),
    (SHOP_PY, "Sells things.", "What sells things.", 2, "begins with What: "),
    (SHOP_PY, "The things", "Of things", 8, "begins with Of: "),
    (SHOP_PY, "A shop.", "It is no longer a shop.", 16, '"no longer" tells history: '),
    (SHOP_PY, "It is gone.", "Whose thing it was.", 21, "begins with Whose: "),
    (SHOP_PY, "of one.", f"of one. {LONG}.", 24, "36 words: "),
    (SHOP_TOOL, "A thing that", "What", 19, "begins with What: "),
    (SHOP_SHELL, "Another one.", "Of another one.", 4, "begins with Of: "),
    (SHOP_CMAKE, "Builds the shop.", "Which shop is built.", 1, "begins with Which: "),
    (SHOP_CS, "A block.", "Of a block.", 10, "begins with Of: "),
    (SHOP_PROJECT, "Runs the shop.", "Who runs the shop.", 2, "begins with Who: "),
    (SHOP_PROJECT, "Two lines", "Of lines", 5, "begins with Of: "),
    (SHOP_MODULE, "Sells a thing.", "What sells a thing.", 2, "begins with What: "),
    (SHOP_MODULE, "every one", "the process who asks", 3, 'a program is not "process who": '),
    (SHOP_STYLE, "Looks.", "What it looks like.", 1, "begins with What: "),
    (SHOP_STYLE, "Colours.", "Of colours.", 2, "begins with Of: "),
    (SHOP_CC, "Comments are", "Of comments", 1, "begins with Of: "),
    (SHOP_CC, "Comments are", "It used to be", 1, '"used to" tells history: '),
    (SHOP_CC, "make room, ", "of the room, ", 3, "begins with of: "),
    (SHOP_CC, "Samples that were lost.", "What was lost there.", 5, "begins with What: "),
    (SHOP_CC, "the file ", "what the file ", 7, "begins with what: "),
    (SHOP_CC, " for another one", f" {LONG}", 8, "41 words: "),
    (SHOP_CC, "Folder(\"of the folder that is", "Folder(\"the folder that no longer is", 8, '"no longer" tells history: '),
    (SHOP_CC, "show no table", "which table it shows", 10, "begins with which: "),
    (SHOP_CC, " is not there: ", " is a program who left: ", 16, 'a program is not "program who": '),
    (SHOP_PAGE, "this is a text", "who reads a text", 2, "begins with who: "),
    (SHOP_PAGE, "The panel shows", "Of the panel shows", 4, "begins with Of: "),
    (SHOP_PAGE, "Each has", f"Each {LONG} has", 6, "41 words: "),
]
PLAIN = (SHOP_CC, 'Folder("of the folder that is")', 'Folder("a folder")')


def complaints_of(files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        return list(complaints(root)), means(root)


def changed(name, old, new):
    assert old in FILES[name], old
    return {**FILES, name: FILES[name].replace(old, new, 1)}


def plain(passages):
    return [(passage.line, " ".join(passage.text.split())) for passage in passages if passage.text.strip()]


class RulesTest(unittest.TestCase):
    def test_plain_texts_are_plain(self):
        self.assertEqual(complaints_of(changed(*PLAIN))[0], [])

    def test_each_wrong_text_is_found(self):
        for name, old, new, line, beginning in DAMAGE:
            with self.subTest(beginning):
                found, _ = complaints_of(changed(name, old, new))
                self.assertTrue(any(where == name and at == line and text.startswith(beginning) for where, at, text in found), found)

    def test_the_mean_of_a_folder_of_messages(self):
        found, words = complaints_of({f"{USERSPACE}/a/b.cc": f'Say("{"It is" + " so" * 17}", "{"It is" + " so" * 17}", "{"It is" + " so" * 17}", "a b c")'})
        self.assertEqual(found, [])
        self.assertEqual(words[f"messages of {USERSPACE}/a"], 15)
        found, _ = complaints_of({f"{USERSPACE}/a/b.cc": 'Say(' + ", ".join(['"It is' + " so" * 17 + '"'] * 4) + ")"})
        self.assertEqual(found, [(f"{USERSPACE}/a", 1, "19.0 words a sentence on average, 18 are the most")])

    def test_the_mean_of_the_comments_of_a_file(self):
        sentence = "It is" + " so" * 17 + ". "
        self.assertEqual(complaints_of({f"{BPF}/a.h": f"// {sentence * 4}\n"})[0], [(f"{BPF}/a.h", 1, "19.0 words a sentence on average, 18 are the most")])
        self.assertEqual(complaints_of({f"{BPF}/a.h": f"// {sentence * 3}\n"})[0], [])  # so few say nothing

    def test_words_that_only_look_wrong(self):
        for text in ("It is used to read.", "Users who ask get one.", 'A text says "no longer" there.', "What does it read?", "The user, who owns it, reads."):
            with self.subTest(text):
                self.assertEqual(complaints_of({f"{BPF}/a.h": f"// {text}\n"})[0], [])


class SourceCommentsTest(unittest.TestCase):
    def test_comments_with_lines_of_their_own(self):
        self.assertEqual(plain(comments(HEADER)), [
            (1, "Reads a file. - It has items of two lines."), (10, "A block."), (11, "Two lines of one."), (17, "Indented. Another one.")])

    def test_tags_of_jsdoc_have_sentences_of_their_own(self):
        self.assertEqual(plain(comments(MODULE)), [
            (1, "Sells a thing."), (3, "every one that is there or is not"), (8, "of all things that were sold")])

    def test_comments_and_docstrings_of_python(self):
        self.assertEqual(plain(python_comments(SCRIPT)), [
            (2, "Sells things. usage: sell THING of which there are some"), (8, "The things"), (16, "A shop."),
            (19, "A thing that was sold. It is gone."), (22, "Two lines of one.")])

    def test_hashed_comments(self):
        self.assertEqual(plain(hashed_comments(BUILD)), [(1, "Builds the shop."), (3, "Indented. Another one.")])

    def test_comments_of_markup(self):
        self.assertEqual(plain(markup_comments(PROJECT)), [(2, "Runs the shop."), (4, "Two lines of one.")])

    def test_the_first_line_of_a_program_names_its_language(self):
        self.assertEqual(plain(program_comments(SCRIPT)), plain(python_comments(SCRIPT)))
        self.assertEqual(plain(program_comments("#!/bin/sh\n# Sells.\n")), [(2, "Sells.")])
        self.assertEqual(program_comments("# Sells.\n"), [])

    def test_lines_keep_their_places(self):
        self.assertEqual(comments(HEADER)[0].text.split("\n")[4:], ["- It has items", "of two lines."])


class MessagesTest(unittest.TestCase):
    def test_messages(self):
        self.assertEqual([(message.line, message.text) for message in messages(MESSAGES)], [
            (3, "make room, and try again"), (5, "Samples that were lost."), (7, "the file x of process x is gone: x"),
            (8, "look for another one in the folder x."), (8, "of the folder that is"), (10, "show so many rows\nof a table"), (10, "show no table"),
            (11, "Examples:\n\nof it there is more."), (15, 'and so x says "it" too'), (16, "x is not there: x")])

    def test_a_source_that_is_cut_off_is_read_as_far_as_it_goes(self):
        for end in range(len(MESSAGES)):
            messages(MESSAGES[:end])


class PageTextsTest(unittest.TestCase):
    def test_texts(self):
        self.assertEqual([(text.line, text.text) for text in texts(PAGE)], [
            (2, "this is a text"), (2, "x of them \u2026 are here"), (4, "The panel shows x and all that is in it."), (6, "Each has x of these.")])


if __name__ == "__main__":
    unittest.main()
