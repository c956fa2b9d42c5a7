"""Texts that people read in a file: documents, comments, and the texts that the program prints."""
import bisect
import io
import posixpath
import re
import tokenize

DOCUMENT, COMMENT, MESSAGE = "document", "comment", "message"

WITH_SLASHES = {".cc", ".h", ".c", ".cs", ".js", ".jsx", ".mjs", ".css"}
WITH_HASHES = {"", ".cmake", ".txt", ".sh", ".service"}

# A literal comes before a comment, so that "http://" begins none.
C_TOKEN = re.compile(r"""
    R"(?P<end>\w*)\(.*?\)(?P=end)"
    | "(?P<message>(?:\\.|[^"\\\n])*)"
    | '(?:\\.|[^'\\\n])'
    | (?P<comment>//[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*.*?\*/)""", re.S | re.X)
HASH_COMMENT = re.compile(r"(?:(?<=\s)|^)#(?!!)[^\n]*(?:\n[ \t]*#[^\n]*)*", re.M)
MARKER = re.compile(r"^[ \t]*(?://+|/\*+|\*(?!/)|#+)|\*/", re.M)


def passages(path, text):
    """(first line, kind, text) of each passage. The markers of comments are left out; lines stay lines."""
    suffix = posixpath.splitext(path)[1]
    if suffix == ".md" or "/prose/" in path:
        yield 1, DOCUMENT, text
    elif suffix == ".py" or text.startswith("#!/usr/bin/env python3"):
        yield from _python(text)
    elif suffix in WITH_SLASHES:
        yield from _numbered(text, _with_slashes(path, text))
    elif suffix in WITH_HASHES:
        yield from _numbered(text, ((m.start(), COMMENT, m[0]) for m in HASH_COMMENT.finditer(text)))


def _with_slashes(path, text):
    says_messages = path.startswith("userspace/") and path.endswith((".cc", ".h"))
    for found in C_TOKEN.finditer(text):
        if found["comment"]:
            yield found.start(), COMMENT, found["comment"]
        elif found["message"] and says_messages:
            yield found.start(), MESSAGE, found["message"]


def _numbered(text, found):
    ends = [m.start() for m in re.finditer("\n", text)]
    for at, kind, words in found:
        yield 1 + bisect.bisect_left(ends, at), kind, MARKER.sub("", words) if kind == COMMENT else words


def _python(text):
    """Comments and docstrings. Other texts in tools and tests are used by running them."""
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        docstring = token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT)
        if docstring or token.type == tokenize.COMMENT:
            yield token.start[0], COMMENT, MARKER.sub("", token.string)
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type
