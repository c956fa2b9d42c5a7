"""Sentences in string literals of C++: errors, hints, notices, help of options and metrics.

Literals that stand side by side are one text, and so are the parts that StrCat, StrAppend or + put together. A word
stands in the place of a value. Texts of fewer than three words are names and formats.
"""
import dataclasses
import re

from prose.passages import Passage

VALUE = "x"
_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*)"
    r'|R"(?P<mark>[^()\\\s]*)\((?P<raw>.*?)\)(?P=mark)"'
    r'|"(?P<literal>(?:\\.|[^"\\\n])*)"'
    r"|(?P<other>'(?:\\.|[^'\\\n])*'|[A-Za-z_][\w:]*|\d[\w.']*|->|<<|.)", re.S | re.M)
_JOINS = re.compile(r"(?:absl::)?(?:StrCat|StrAppend)$")
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'", "0": ""}
_WORD = re.compile(r"[\"'(]*[A-Za-z][a-z]*(?:[-'][a-z]+)*[.,;:?!)\"']*")
_QUESTION_TO_A_DATABASE = re.compile(r"\s*(?:SELECT|INSERT|CREATE|UPDATE|DELETE|PRAGMA|WITH|ALTER|DROP|ATTACH)\b")
_ROW = re.compile(r"^ {2,}|\S {3,}\S|^ *clrsampler(?: |$)")


@dataclasses.dataclass
class _Group:
    """The content of brackets, and the word before them."""
    name: str
    parts: list
    line: int


@dataclasses.dataclass(frozen=True)
class _Literal:
    text: str
    line: int


def messages(text):
    """The passages of a source in their order."""
    found = []
    _tell(_tree(text), found)
    passages = [Passage(passage.line, _without_tables(passage.text)) for passage in found]
    return sorted((passage for passage in passages if is_prose(passage.text)), key=lambda passage: passage.line)


def is_prose(text):
    words = text.split()
    plain = sum(bool(_WORD.fullmatch(word)) for word in words)
    return plain >= 3 and 2 * plain >= len(words) and not _QUESTION_TO_A_DATABASE.match(text)


def _without_tables(text):
    """Lines of a table, or of an example, are no sentences."""
    return "\n".join("" if _ROW.search(line) else line for line in text.split("\n"))


def _tree(text):
    root = _Group("", [], 1)
    stack, before, line, last = [root], "", 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", last, token.start())
        last = token.start()
        if token["space"]:
            continue
        raw, literal, other = token["raw"], token["literal"], token["other"]
        if other is None:
            stack[-1].parts.append(_Literal(raw if raw is not None else _unescaped(literal), line))
        elif other in "([{":
            name = stack[-1].parts.pop() if re.match(r"[A-Za-z_]", before) else ""
            group = _Group(name, [], line)
            stack[-1].parts.append(group)
            stack.append(group)
        elif other in ")]}":
            if len(stack) > 1:
                stack.pop()
        else:
            stack[-1].parts.append(other)
        before = other or ""
    return root


def _unescaped(literal):
    text = re.sub(r"\\x[0-9a-fA-F]+|\\u[0-9a-fA-F]{4}", VALUE, literal)
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text)


def _expressions(group):
    """Runs of parts between commas, semicolons, assignments and the marks of a choice."""
    run = []
    for part in [*group.parts, ","]:
        if isinstance(part, str) and part in (",", ";", "=", "?", ":", "return"):
            if run:
                yield run
            run = []
        else:
            run.append(part)


def _tell(group, found):
    """Adds the passages of a group, and of the groups in it."""
    for run in _expressions(group):
        rendered = _rendered(run)
        if rendered.text:
            found.append(rendered)
        for part in run:
            if isinstance(part, _Group) and not _JOINS.match(part.name):
                _tell(part, found)
            elif isinstance(part, _Group):
                _tell_inside(part, found)


def _tell_inside(group, found):
    """Looks into the parts that StrCat joins: calls in it may hold texts of their own."""
    for part in group.parts:
        if isinstance(part, _Group):
            _tell_inside(part, found) if _JOINS.match(part.name) else _tell(part, found)


def _rendered(run):
    """The text of one expression; empty where no literal is in it."""
    pieces, line, is_value = [], 0, False
    for part in run:
        inner = part if isinstance(part, _Literal) else _joined(part) if isinstance(part, _Group) and _JOINS.match(part.name) else None
        if inner and inner.line:
            pieces.append((VALUE if is_value else "") + inner.text)
            line, is_value = line or inner.line, False
        elif part in ("+", "<<"):
            is_value = False if pieces and not is_value else is_value
        else:
            is_value = True
    if not line:
        return Passage(0, "")
    return Passage(line, "".join(pieces) + (VALUE if is_value else ""))


def _joined(group):
    """The text that StrCat puts together. Where it may put in one of several texts, the longest stands."""
    choices, text, line = [], "", 0

    def close():
        nonlocal choices, text, line
        best = max(choices, key=lambda passage: len(passage.text), default=Passage(0, ""))
        text += best.text if best.line else VALUE
        line, choices = line or best.line, []

    run, first = [], True
    for part in [*group.parts, ","]:
        if isinstance(part, str) and part in (",", "?", ":"):
            if run:
                choices.append(_rendered(run))
            run = []
            if part == ",":
                if not (first and group.name.endswith("StrAppend")):
                    close()
                first, choices = False, []
        else:
            run.append(part)
    return Passage(line, text)
