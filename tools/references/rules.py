"""Mentions of what is not there. Each rule takes an Inventory and a passage, and gives (position in it, complaint)."""
import fnmatch
import posixpath
import re

from references import elsewhere
from references.passages import DOCUMENT, MESSAGE, passages

IN_PATH = r"A-Za-z0-9_.*{},/+\-"
PATH = re.compile(rf"(?<![{IN_PATH}$~<>\\@:%])[{IN_PATH}]+")
EXTENSION = re.compile(r"\w\.(md|h|cc|c|py|js|jsx|mjs|cmake|cs|csproj|sh|css)$")


def missing_files(there, path, kind, text):
    for found in PATH.finditer(text):
        word = found[0].rstrip(".,-+")
        first, _, rest = word.partition("/")
        if first == "build" and rest:
            if rest.split("/")[0] not in there.built | {"NAME"}:
                yield found.start(), f"no build makes {word}"
        elif kind == MESSAGE and not word.endswith(".md") or not first:
            continue  # code, or an absolute path
        elif EXTENSION.search(word) or rest and first in there.roots:
            for one in _without_braces(word):
                ours = "/" not in word or first in there.roots or first.startswith(".") or there.has_place(posixpath.basename(one), "")
                if ours and not there.has_place(one, posixpath.dirname(path)) and not any(fnmatch.fnmatch(one, other) for other in elsewhere.FILES):
                    yield found.start(), f"no file {one}"


def _without_braces(word):
    """`a.{h,cc}` is two words."""
    found = re.search(r"\{([^{}]*,[^{}]*)\}", word)
    if not found:
        return [word]
    return [whole for part in found[1].split(",") for whole in _without_braces(word[:found.start()] + part + word[found.end():])]


def missing_links(there, path, kind, text):
    if kind != DOCUMENT:
        return
    for found in re.finditer(r"\]\(([^()\s]*)\)", text):
        target, _, heading = found[1].partition("#")
        if ":" in target:
            continue
        file = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
        if file not in there.places:
            yield found.start(), f"no file {target}"
        elif heading and heading not in _anchors(there.files[file] or ""):
            yield found.start(), f"no heading {found[1]}"


def _anchors(document):
    """As GitHub makes them of headings."""
    outside = re.sub(r"^```.*?^```", "", document, flags=re.M | re.S)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", outside, re.M)}


TEST = re.compile(r"(?<![\w./*$-])[a-z0-9_]+_(?:test|test_matrix|corpus|matrix|selftest)(?![\w*/]|\.\w)")
SELECTION = re.compile(r"\b(?:ctest|tools/test)\b[^`\n]*?\s-(R|E|L|LE)\s+('[^'\n]*'|\"[^\"\n]*\"|[^\s`')]+)")
CASE = re.compile(r"(?<![\w./])(\w+Test)\.([A-Za-z]\w+)")
SUITE_OF_FILE = re.compile(r"\b(\w+_test\.py) (\w+Test)\b")


def missing_tests(there, path, kind, text):
    for found in TEST.finditer(text):
        if found[0] not in there.tests | there.stems | there.cmake_words:
            yield found.start(), f"no test {found[0]}"
    for found in SELECTION.finditer(text):
        of, names = ("label", there.labels) if found[1].startswith("L") else ("test", there.tests)
        expression = found[2].strip("'\"").replace("\\|", "|")  # in a table of Markdown
        for one in [expression] if "(" in expression else expression.split("|"):
            if one != "NAME" and not any(re.search(one, name) for name in names):
                yield found.start(), f"no {of} {one}"
    for found in CASE.finditer(text):
        if found[0] not in there.cases:
            yield found.start(), f"no test {found[0]}"
    for found in SUITE_OF_FILE.finditer(text):
        code = "".join(code or "" for file, code in there.files.items() if posixpath.basename(file) == found[1])
        if f"class {found[2]}(" not in code:
            yield found.start(), f"no test {found[0]}"


PRESET = re.compile(r"([^`\n&]*)--preset[ =]([\w-]+)|\bpresets? [`\"]([\w-]+)[`\"]|[`\"]([\w-]+)[`\"] preset\b")


def missing_presets(there, path, kind, text):
    for found in PRESET.finditer(text):
        command = found[1] or ""
        of = "test" if "ctest" in command else "build" if "--build" in command else "configure"
        name = found[2] or found[3] or found[4]
        if name != "NAME" and name not in there.presets[of]:
            yield found.start(found.lastindex), f"no {of} preset {name}"


OPTION = re.compile(r"(?<![\w,-])--[a-z][a-z0-9-]*")
ENDS_COMMAND = re.compile(r"[`|;&()]|(?<!\\)\n|,\s|\s#\s|\s--\s")

def missing_options(there, path, kind, text):
    for found in OPTION.finditer(text):
        words = _command(text[:found.start()])
        program = posixpath.basename(words[0]) if words else ""
        if program == "clrsampler":
            of, known = _of_clrsampler(there, words[1:])
        elif not program or program in there.stems or not _in_code(text, found.start(), kind):
            of, known = "", there.options | there.options_of_tools | elsewhere.OPTIONS
        else:
            continue  # another project's program
        if found[0] not in known:
            yield found.start(), f"no option {found[0]}{of}"


def _command(before):
    """The words of the command that `before` ends in, from its program on."""
    words = ENDS_COMMAND.split(before)[-1].replace("\\\n", " ").split()
    for at in reversed(range(len(words))):  # also in prose: or clrsampler top --once
        if posixpath.basename(words[at]) == "clrsampler" and not (at and words[at - 1].startswith("-")):
            return words[at:]
    while words and (words[0] in ("$", "sudo", "exec", "env") or re.match(r"-|\w+=", words[0])):
        words.pop(0)
    return words


def _in_code(text, at, kind):
    """Between backticks, or in a fenced block."""
    fences = text.count("```", 0, at) if kind == DOCUMENT else 0
    return fences % 2 == 1 or (text.count("`", 0, at) - 3 * fences) % 2 == 1


def _of_clrsampler(there, words):
    """(its command, the options of that). In prose, and for a placeholder as in `clrsampler COMMAND`, all options."""
    command = next((name for name in (" ".join(words[:2]), "".join(words[:1])) if name in there.commands), None)
    if command is None and words and not words[0].startswith("-"):
        return " of clrsampler", there.options
    return f" of clrsampler {command or ''}".rstrip(), there.commands.get(command or "", there.options) | there.hidden_options


KIND = re.compile(r"otices_?(?:->|\.)Add\(\s*\"([a-z_0-9]+)\"|\b(?:Report|say|bad_records)\(\"([a-z_0-9]+)\"")
KINDS_OF_NOTICES = "docs/troubleshooting.md"


def kinds_without_a_place(there):
    """Kinds of notices that the document which explains them does not have."""
    explained = set(re.findall(r"`([a-z_0-9]+)`", there.files.get(KINDS_OF_NOTICES) or ""))
    for path, text in sorted(there.files.items()):
        if text and re.match(r"userspace/.*\.cc$", path):
            for found in KIND.finditer(text):
                kind = found[1] or found[2]
                if kind not in explained:
                    yield f"{path}:{text.count(chr(10), 0, found.start()) + 1}: {KINDS_OF_NOTICES} does not have the kind {kind}"


LIVE_TEST = re.compile(r"clrsampler_live_test\((\w+)([^)]*)\)")


def cases_of_no_matrix(there):
    """Cases that only the matrix runs, in a class of which no matrix is declared."""
    run = set()
    declared = "".join(text for path, text in there.files.items() if text and re.match(r"tests/e2e/.*(CMakeLists\.txt|\.cmake)$", path))
    for found in LIVE_TEST.finditer(declared):
        words = found[2].split()
        if "MATRIX" in words:
            file = words[words.index("FILE") + 1] if "FILE" in words else found[1]
            run |= {(file, name) for name in words if name.endswith("Test")} or {(file, None)}
    for path, text in sorted(there.files.items()):
        if text and re.match(r"tests/e2e/\w+_test\.py$", path):
            for found in re.finditer(r"^class (\w+).*?(?=^class |\Z)", text, re.M | re.S):
                file = posixpath.basename(path)[:-len(".py")]
                if "@harness.in_matrix" in found[0] and not run & {(file, found[1]), (file, None)}:
                    yield f"{path}:{text.count(chr(10), 0, found.start()) + 1}: no matrix runs the cases of {found[1]}"


RULES = (missing_files, missing_links, missing_tests, missing_presets, missing_options)
# Generated files say what their sources say; data of tests says what others wrote.
READ = re.compile(r"\.md$|^CMakeLists\.txt$|^(userspace|bpf|include|tests|tools|cmake|\.ci)/(?!.*\b(generated|corpus|testdata|built)/)")


def complaints(there):
    """A line for each mention of what is not there."""
    found = {}  # a link to a file that is gone breaks two rules with one complaint
    for path, text in sorted(there.files.items()):
        if text is None or not READ.search(path):
            continue
        for line, kind, words in passages(path, text):
            for rule in RULES:
                for at, complaint in rule(there, path, kind, words):
                    found[f"{path}:{line + words.count(chr(10), 0, at)}: {complaint}"] = None
    return [*found, *kinds_without_a_place(there), *cases_of_no_matrix(there)]
