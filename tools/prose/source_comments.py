"""Comments of C and C++ that have lines of their own. A comment behind code is a word about that line, and no prose."""
import re

from prose.passages import Passage

_LINE = re.compile(r"\s*//+ ?(.*)")
_BLOCK = re.compile(r"^[ \t]*/\*(.*?)\*/[ \t]*$", re.M | re.S)
_ITEM = re.compile(r" *(?:[-*]|\d+\.) +(?=\S)")
_NO_PROSE = re.compile(r"\t|\s{2,}|clang-format|NOLINT|SPDX-|\S+ {3,}\S|[-=]{3,}")  # drawings, tables, code, marks of tools


def comments(text):
    """Every comment, with an empty line in the place of each that is a drawing, a table or code."""
    found = [Passage(text.count("\n", 0, block.start()) + 1, _without_frame(block[1])) for block in _BLOCK.finditer(text)]
    lines, first = [], 0
    for number, line in enumerate([*_BLOCK.sub(lambda block: re.sub(r"[^\n]", "", block[0]), text).split("\n"), ""], 1):
        comment = _LINE.fullmatch(line)
        if comment:
            first = first or number
            lines.append(comment[1])
        elif lines:
            found.append(Passage(first, _prose_of(lines)))
            lines, first = [], 0
    return sorted(found, key=lambda passage: passage.line)


def _without_frame(block):
    return _prose_of([re.sub(r"^\s*\* ?|^ ", "", line) for line in block.rstrip().split("\n")])


def _prose_of(lines):
    """Lines that stand further right are no prose, but for list items and their further lines."""
    kept, item = [], None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        marker = _ITEM.match(line)
        if marker and item is None or marker and indent < item:
            item = marker.end()
        elif not line.strip() or indent < 2:
            item = None
        kept.append("" if _NO_PROSE.match(line) and item is None or item is not None and indent > item else line.strip())
    return "\n".join(kept)
