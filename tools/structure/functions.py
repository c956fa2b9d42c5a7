"""Functions of C and C++ sources, by their braces."""
import re

NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M)
# A statement, a type, a namespace or a lambda is no function of its own.
OTHER = re.compile(r"^(?:if|for|while|switch|else|do|case|default|return|namespace|class|struct|enum|union|extern|try|catch)\b|=\s*\[|\]\s*\(|=\s*$|,\s*$|\breturn\b")
NAME = re.compile(r"(~?[A-Za-z_]\w*(?:<[^<>]*>)?(?:::~?[A-Za-z_]\w*)*|operator[^\s(]+|operator\(\))\s*\(")


def without_noise(text):
    """The same number of lines, without comments, strings and directives."""

    def blank(match):
        return "\n" * match.group(0).count("\n") or " "

    # Quotes within numbers are no characters: 1'000.
    text = re.sub(r"(?<=\d)'(?=\d)", "_", text)
    return DIRECTIVE.sub(blank, NOISE.sub(blank, text))


def functions(text):
    """(name, first line, last line) of each definition, with lambdas and types inside as parts of it."""
    text = without_noise(text)
    depth_of_function = None
    depth, head_at = 0, 0
    name, first = "", 0
    for at, char in enumerate(text):
        if char == "{":
            head = text[head_at:at]
            if depth_of_function is None and begins_function(head):
                depth_of_function = depth
                name = NAME.search(head.strip()).group(1)
                first = text.count("\n", 0, head_at + len(head) - len(head.lstrip())) + 1
            depth += 1
            head_at = at + 1
        elif char == "}":
            depth -= 1
            if depth == depth_of_function:
                yield name, first, text.count("\n", 0, at) + 1
                depth_of_function = None
            head_at = at + 1
        elif char == ";":
            head_at = at + 1
        elif char == ":" and re.search(r"\b(?:public|private|protected)\s*$", text[head_at:at]):
            head_at = at + 1


def begins_function(head):
    head = re.sub(r"^\s*(?:template\s*<[^{}]*?>\s*)", "", head).strip()
    return "(" in head and not OTHER.search(head) and NAME.search(head) is not None and not re.search(r"[^=!<>]=[^=]", head.split("(")[0])
