"""Sources of C and C++ with what is no code taken away. Every line keeps its place."""
import re

# The first alternative that matches wins: a quotation mark in a comment opens no literal, and 1'000 is a number.
TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|(?P<literal>R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r"|\b\d[\w.']*\w",
    re.S,
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)


def blank(text):
    """Spaces in place of everything but line ends."""
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """Without literals of several lines, too: these are data."""
    return TOKEN.sub(lambda match: blank(match[0]) if match["comment"] or "\n" in match[0] else match[0], text)


def code_only(text):
    """Without comments, directives of the preprocessor and the insides of literals."""

    def masked(match):
        if match["comment"]:
            return blank(match[0])
        if match["literal"]:
            return '"' + blank(match[0][1:-1]) + '"'
        return match[0]

    return DIRECTIVE.sub(lambda match: blank(match[0]), TOKEN.sub(masked, text))
