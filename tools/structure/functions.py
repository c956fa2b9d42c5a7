"""Finds the functions and the tables of a C or C++ source in clang-format's layout, by its braces."""
import dataclasses
import re

CONTAINER = re.compile(r"(?:typedef\s+|inline\s+)*(?:namespace|class|struct|union|extern)\b")
TEMPLATE = re.compile(r"^template\s*<")
OPERATOR = re.compile(r"\boperator\s*(?:\(\)|[^\s\w(]+)")
ATTRIBUTE = re.compile(r"__attribute__\s*\(\([^\n]*?\)\)|^SEC\s*\([^\n]*\)\s*\n")
ACCESS = re.compile(r"\b(?:public|protected|private)\s*:")
LOGIC = re.compile(r"\b(?:if|for|while|do|switch|goto|try)\b")
# An option of a command is declared, by itself or with others that belong together.
OPTION = re.compile(r"\w+(?:\.|->)add_(?:option|flag)\w*\(|Declare\w+\(")
NAME = re.compile(r"([~\w:]+)\s*$")


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    first: int  # lines, from 1
    last: int
    is_table: bool

    @property
    def lines(self):
        return self.last - self.first + 1


@dataclasses.dataclass(frozen=True)
class Layout:
    functions: list
    tables: list  # (first, last) lines of initialisers outside of functions and of functions that are tables


class Unbalanced(Exception):
    """Braces that do not match."""


def closing(code, opening):
    """Where the brace or parenthesis at `opening` is closed."""
    pairs = {"{": "}", "(": ")", "<": ">"}
    left, right = code[opening], pairs[code[opening]]
    depth = 0
    for match in re.compile(re.escape(left) + "|" + re.escape(right)).finditer(code, opening):
        depth += 1 if match[0] == left else -1
        if depth == 0:
            return match.start()
    raise Unbalanced(f"line {code.count(chr(10), 0, opening) + 1}: {left} is never closed")


def without_parentheses(head):
    """Only what stands outside of all parentheses; () in their place."""
    out, depth = [], 0
    for char in head:
        if char == "(":
            if depth == 0:
                out.append("()")
            depth += 1
        elif char == ")":
            depth -= 1
        elif depth == 0:
            out.append(char)
    return "".join(out)


def without_template(head):
    head = head.strip()
    while TEMPLATE.match(head):
        parameters = re.sub(r"\([^()]*\)", lambda match: " " * len(match[0]), head)  # where < may compare
        head = head[closing(parameters, head.index("<")) + 1 :].strip()
    return head


def kind_of(head):
    """The kind that a brace opens behind these words: "container", "function" or "data"."""
    outside = without_parentheses(OPERATOR.sub("operator", ATTRIBUTE.sub("", without_template(head)).strip()))
    if CONTAINER.match(outside) and "()" not in outside:
        return "container"
    if "=" in outside:
        return "function" if re.search(r"=\s*\[", outside) else "data"
    return "function" if "()" in outside else "data"


def name_of(head):
    """The name before the parameters."""
    head = ATTRIBUTE.sub("", without_template(head)).strip()
    program = re.search(r"\bBPF_\w+\((\w+)", head)
    if program:
        return program[1]
    operator = OPERATOR.search(head)
    if operator:
        return operator[0]
    value = re.search(r"(\w+)\s*=\s*\[", head)  # a lambda with a name
    return value[1] if value else NAME.search(head[: head.index("(")])[1]


def statements_of(body):
    """The statements of a body without control flow; None: there is something behind the last one."""
    statements, at, start = [], 0, 0
    while at < len(body):
        if body[at] in "{(":
            at = closing(body, at)
        elif body[at] == ";":
            statements.append(body[start:at].strip())
            start = at + 1
        at += 1
    return None if body[start:].strip() else statements


def is_table(body):
    """Whether the body only declares options, or is one initialiser in braces, at most given a name that is returned."""
    statements = None if LOGIC.search(body) else statements_of(body)
    if not statements:
        return False
    if all(OPTION.match(statement) for statement in statements):
        return True
    if len(statements) > 2 or not statements[0].endswith("}"):
        return False
    if len(statements) == 1:
        return statements[0].startswith("return")
    table = re.match(r"(?:static\s|const\s|constexpr\s)*[^={]*?(\w+)(?:\[\w*\])?\s*=", statements[0])
    return bool(table) and re.fullmatch(r"return \*?" + re.escape(table[1]), statements[1]) is not None


def layout(code):
    """The functions and tables of source that source.code_only gave."""
    functions, tables = [], []

    def line(at):
        return code.count("\n", 0, at) + 1

    start = at = 0  # start: of the words before the next brace
    while at < len(code):
        char = code[at]
        if char == "(":
            at = closing(code, at)
        elif char in ";}":
            start = at + 1
        elif char == ":" and ACCESS.search(code, start, at + 2):
            start = at + 1
        elif char == "{" and code[at - 1].isspace():
            head = code[start:at]
            kind = kind_of(head)
            if kind == "container":
                start = at + 1
            else:
                end = closing(code, at)
                first = start + len(head) - len(head.lstrip())
                if kind == "function":
                    function = Function(name_of(head), line(first), line(end), is_table(code[at + 1 : end]))
                    functions.append(function)
                    if function.is_table:
                        tables.append((function.first, function.last))
                    start = end + 1
                else:
                    tables.append((line(first), line(end)))
                at = end
        elif char == "{":  # Type{...}, or a member's initialiser
            at = closing(code, at)
        at += 1
    return Layout(functions, tables)
