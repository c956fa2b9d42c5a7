"""Sentences that pages show: text between tags, and literals of JavaScript. A word stands in the place of a value."""
import re

from prose.messages import VALUE, is_prose
from prose.passages import Passage

_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<literal>'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\])*`)", re.S)
_INLINE = re.compile(r"</?(?:a|b|code|em|i|kbd|span|strong|time)(?: [^<>]*)?>")
_TEXT = re.compile(r">((?:[^<>{}]|\{(?:[^<>{}]|\{[^<>{}]*\})*\})+)(?=<)")
_CODE = re.compile(r"&&|\|\||[={}]|\w\(|;(?!\s+[a-z])|\b(?:return|continue|if) ?[;(]")


def texts(source):
    """The passages of a module in their order."""
    found = []
    for token in _TOKEN.finditer(source):
        if token["literal"]:
            found.append(Passage(_line(source, token.start()), _unescaped(token["literal"][1:-1])))
    markup = _TOKEN.sub(lambda token: _blank(token[0]) if token["comment"] else token[0], source).replace("=>", "= ")
    markup = _INLINE.sub(lambda tag: _blank(tag[0]), markup)
    for text in _TEXT.finditer(markup):
        words = " ".join(_without_values(text[1], r"\{[^{}]*\}").split())
        if not _CODE.search(words):
            found.append(Passage(_line(source, text.start()), words))
    return sorted((passage for passage in found if is_prose(passage.text)), key=lambda passage: passage.line)


def _line(source, position):
    return source.count("\n", 0, position) + 1


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def _without_values(text, pattern):
    """Every line keeps its place."""
    while True:
        replaced = re.sub(pattern, lambda value: VALUE + "\n" * value[0].count("\n"), text)
        if replaced == text:
            return text
        text = replaced


def _unescaped(literal):
    text = re.sub(r"\\u\{?[0-9a-fA-F]+\}?|\\x[0-9a-fA-F]{2}", "\u2026", literal)
    return _without_values(re.sub(r"\\(.)", r"\1", text), r"\$\{[^{}]*\}")
