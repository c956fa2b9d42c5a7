#!/usr/bin/env python3
"""A made-up document in which every sentence is plain, and one change after the other that makes one wrong."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from prose.document import cells, masked, paragraphs, sentences  # noqa: E402
from prose.rules import complaints, mean  # noqa: E402
from prose.wrapping import COLUMNS, wrapped  # noqa: E402

DOCUMENT = """# Of headings nobody asks a sentence, and this one may be as long as it likes, which it shows by going on

A program samples. It **names** every frame (see `a file. With Dots`), and it counts
what was lost. What does it cost? Little.

- One item. [A link](https://example.org/Of.Course) stands here.
  Its second line.
- Another one:

      Of code nothing is asked

| Which | what |
|---|---|
| a cell with `a \\| bar` | two words |

> A quotation. It goes
> on here.

```
Of code nothing is asked, however long its lines are, and this one is longer than the one hundred and twenty columns of prose.
```
"""
LONG = " ".join(["word"] * 36)

# (what stands there, what is put in its place, the complaint)
DAMAGE = [
    ("A program samples.", "Of programs one samples.", (3, "begins with Of: Of programs one samples.")),
    ("Little.", "**What** it costs is little.", (4, "begins with What: **What** it costs is little.")),
    ("Its second line.", "(Which is its second line.)", (7, "begins with Which: (Which is its second line.)")),
    ("It goes\n> on here.", "Who goes\n> on here.", (16, "begins with Who: Who goes > on here.")),
    ("Little.", "It no longer costs.", (4, '"no longer" tells history: It no longer costs.')),
    ("Its second line.", "A process who waits.", (7, 'a program is not "process who": A process who waits.')),
    ("Another one:", "Whose it is:", (8, "begins with Whose: Whose it is:")),
    ("It **names**", f"It {LONG} **names**", (3, "48 words: ")),
    ("two words", " ".join(["word"] * 41), (14, "41 words in a cell: ")),
    ("Little.", "x" * 60 + " " + "y" * 60, (4, f"{len('what was lost. What does it cost? ') + 121} columns: ")),
]


def plain(text):
    return [sentence.plain for paragraph in paragraphs(text) for sentence in sentences(paragraph)]


class RulesTest(unittest.TestCase):
    def test_plain_sentences_are_plain(self):
        self.assertEqual(complaints(DOCUMENT), [])

    def test_each_wrong_sentence_is_found(self):
        for old, new, (line, beginning) in DAMAGE:
            with self.subTest(beginning):
                self.assertIn(old, DOCUMENT)
                found = complaints(DOCUMENT.replace(old, new, 1))
                self.assertTrue(any(at == line and text.startswith(beginning) for at, text in found), found)

    def test_35_words_are_not_too_many(self):
        short = "It runs. " * 3
        self.assertEqual(complaints(wrapped(short + "Word" + " word" * 34 + ".")), [])
        self.assertEqual(complaints(wrapped(short + "Word" + " word" * 35 + "."))[0][1][:8], "36 words")

    def test_the_mean_of_a_page(self):
        text = "One" + " word" * 18 + ". "
        self.assertEqual(complaints(wrapped(text * 3)), [(1, "19.0 words a sentence on average, 18 are the most")])
        self.assertEqual(complaints(wrapped(text * 3 + "Three words end.")), [])
        self.assertEqual(mean("# Nothing\n"), 0)

    def test_a_line_that_cannot_be_broken_may_be_long(self):
        self.assertEqual(complaints(f"- [a link with words](https://example.org/{'x' * COLUMNS})\n"), [])
        self.assertEqual(complaints(f"`a command --with {'x' * COLUMNS}`\n"), [])


class DocumentTest(unittest.TestCase):
    def test_sentences(self):
        self.assertEqual(plain(DOCUMENT), [
            "A program samples.", "It names every frame (see Ccccccccccccccccccc), and it counts what was lost.", "What does it cost?", "Little.", "One item.",
            "A link stands here.", "Its second line.", "Another one:", "A quotation.", "It goes on here."])

    def test_a_sentence_ends_with_its_marks(self):
        self.assertEqual(plain('He said "go." (It went.) **Bold.** `code` follows: 3 times, e.g. Linux 1, 2 ... 9. libc comes. [it](http:x) ends: [so](http:x)'),
                         ['He said "go."', "(It went.)", "Bold.", "Cccccc follows:", "3 times, e.g. Linux 1, 2 ... 9.", "libc comes.", "it ends: so"])

    def test_places(self):
        for paragraph in paragraphs(DOCUMENT):
            for sentence in sentences(paragraph):
                self.assertEqual(" ".join(DOCUMENT[sentence.start:sentence.end].split()), sentence.text)

    def test_a_mask_is_as_long_as_its_text(self):
        for text in (DOCUMENT, "``a ` b`` *c* _d_ a_b_c ![p](http:q) [r", "`open"):
            self.assertEqual(len(masked(text)), len(text))

    def test_cells(self):
        self.assertEqual([(cell.text, cell.words) for cell in cells(DOCUMENT)],
                         [("Which", 1), ("what", 1), ("a cell with `a \\| bar`", 4), ("two words", 2)])

    def test_labels_of_manual_pages_are_no_prose(self):
        self.assertEqual(plain("= FILES\n/etc/a::\nthe file.\n\n    Of code\n"), ["the file."])


class WrappingTest(unittest.TestCase):
    def test_lines_are_filled(self):
        text = wrapped("- " + "word " * 50 + "\n  end\n\nshort\nlines\n")
        self.assertEqual(text.split("\n")[0], "- " + " ".join(["word"] * 23))
        self.assertTrue(text.endswith("\n  word word word word end\n\nshort lines\n"), text)

    def test_code_and_links_stay_whole(self):
        text = wrapped("word " * 20 + "`some code here` [a link](http:b)")
        self.assertEqual(text.split("\n")[1], "[a link](http:b)")
        self.assertEqual(wrapped("word " * 23 + "`some code`").split("\n")[1], "`some code`")

    def test_no_line_becomes_something_else(self):
        for mark in ("-", "1.", "#", "+"):
            self.assertNotIn(f"\n{mark}", wrapped("x" * 119 + f" {mark} a"))

    def test_sentences_stay_the_same_and_a_second_time_changes_nothing(self):
        once = wrapped(DOCUMENT)
        self.assertEqual(plain(once), plain(DOCUMENT))
        self.assertEqual(wrapped(once), once)

    def test_nothing_but_paragraphs_changes(self):
        for text in ("```\na\nb\n```\n", "| a |\n|---|\n| b |\n", "# a\n# b\n", "term::\ntext\n", "hard  \nbreak\n", "- a\n\n      code\n      code\n"):
            self.assertEqual(wrapped(text), text)


if __name__ == "__main__":
    unittest.main()
