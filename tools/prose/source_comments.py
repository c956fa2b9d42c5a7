"""Comments that have lines of their own, and docstrings. A comment behind code is a word about that line, and no prose."""
import ast
import io
import re
import textwrap
import tokenize

from prose.passages import Passage

_LINE = re.compile(r"\s*//+ ?(.*)")
_HASHED_LINE = re.compile(r"\s*#+(?!!) ?(.*)")
_BLOCK = re.compile(r"^[ \t]*/\*(.*?)\*/[ \t]*$", re.M | re.S)
_MARKUP = re.compile(r"^[ \t]*<!--(.*?)-->[ \t]*$", re.M | re.S)
_PYTHON = re.compile(r"#!.*\bpython")
_TAG = re.compile(r"^@\w+(?: \{.*?\}(?= |$))?(?: +\S+(?=  | *$))?", re.M)  # of JSDoc, with its type and its name
_ITEM = re.compile(r" *(?:[-*]|\d+\.|@\w+) +(?=\S)")
_ROW = re.compile(r".*\S {2,}\S")  # of a table
_NO_PROSE = re.compile(r"\t|\s{2,}|clang-format|NOLINT|noqa|shellcheck|SPDX-|\S+ {3,}\S|[-=]{3,}")  # drawings, tables, code, marks of tools


def comments(text):
    """Comments of C, C++, C#, JavaScript and CSS, with an empty line in the place of each that is a drawing, a table or code."""
    blocks = [part for block in _BLOCK.finditer(text) for part in _tagged(Passage(_line(text, block.start()), _without_frame(block[1])))]
    return _in_order([*blocks, *_blocks_of_lines(_BLOCK.sub(lambda block: re.sub(r"[^\n]", "", block[0]), text), _LINE)])


def hashed_comments(text):
    """Comments of CMake files, YAML and shell scripts."""
    return list(_blocks_of_lines(text, _HASHED_LINE))


def markup_comments(text):
    """Comments of XML and HTML."""
    return [Passage(_line(text, comment.start()), _without_frame(comment[1])) for comment in _MARKUP.finditer(text)]


def python_comments(text):
    """Comments and docstrings. A # in a string begins no comment."""
    bare = [""] * (text.count("\n") + 1)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            bare[token.start[0] - 1] = token.string
    return _in_order([*_docstrings(ast.parse(text)), *_blocks_of_lines("\n".join(bare), _HASHED_LINE)])


def program_comments(text):
    """Comments of a program whose first line names its interpreter. Other files have none."""
    if not text.startswith("#!"):
        return []
    return python_comments(text) if _PYTHON.match(text) else hashed_comments(text)


def _blocks_of_lines(text, pattern):
    lines, first = [], 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        comment = pattern.fullmatch(line)
        if comment:
            first = first or number
            lines.append(comment[1])
        elif lines:
            yield Passage(first, _prose_of(lines))
            lines, first = [], 0


def _docstrings(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node):
            yield Passage(node.body[0].lineno, _prose_of(ast.get_docstring(node).split("\n")))


def _tagged(passage):
    """The text in front of the tags of JSDoc, and that of each tag without its type and name."""
    tags = list(_TAG.finditer(passage.text))
    ends = [*(tag.start() for tag in tags), len(passage.text)]
    yield Passage(passage.line, passage.text[:ends[0]])
    for tag, end in zip(tags, ends[1:]):
        yield Passage(passage.line + _line(passage.text, tag.end()) - 1, passage.text[tag.end():end])


def _line(text, position):
    return text.count("\n", 0, position) + 1


def _in_order(passages):
    return sorted(passages, key=lambda passage: passage.line)


def _without_frame(block):
    first, _, rest = block.rstrip().partition("\n")
    return _prose_of([first.lstrip(" *"), *(re.sub(r"^\* ?", "", line) for line in textwrap.dedent(rest).split("\n"))])


def _prose_of(lines):
    """Lines that stand further right are no prose, but for list items, tags of JSDoc and the further lines of both."""
    kept, item = [], None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        marker = _ITEM.match(line)
        if marker and item is None or marker and indent < item:
            item = marker.end()
        elif not line.strip() or indent < 2:
            item = None
        in_item = item is not None and indent <= item and (marker or not _ROW.match(line))
        kept.append(line.strip() if in_item or item is None and not _NO_PROSE.match(line) else "")
    return "\n".join(kept)
