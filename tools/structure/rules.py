"""Rules for the shape of sources, and the list of what is still to be done."""
import collections
import re

from structure.functions import Unbalanced, layout
from structure.source import code_only, without_comments
from structure.threads import unchecked

MOST_FUNCTION_LINES = 60
MOST_FILE_LINES = 500
RUN_LINES = 6  # so many equal lines are one piece of code that stands in two places

CODE = (".cc", ".h", ".c")
SOURCES = CODE + (".js", ".jsx", ".mjs", ".css")

# To be split, with the length that each has. It may only shrink, and leaves its list when it keeps the rule. Where functions
# of a file share a name, the longest one counts.
FUNCTIONS_TO_BE_SPLIT = {}
FILES_TO_BE_SPLIT = {}
# Pairs of files with equal lines, and how long their longest run is.
REPETITIONS_TO_BE_MERGED = {
    ("userspace/clr/hooks/code_scan_arm64.h", "userspace/clr/hooks/code_scan_x64.h"): 8,  # one interface of two machines
    ("userspace/pipeline/address_symbolizer.cc", "userspace/pipeline/event_stacks.cc"): 8,  # members of an initialiser
}
LISTS = "tools/structure/rules.py"

# Lines that say nothing of themselves.
THIN = re.compile(r"[\s{}()\[\];,]*|#include .*|import .*")


def too_long(what, lines, most, allowed):
    """A complaint, or None. `allowed` is the length in the list, or None."""
    if allowed is None:
        return f"{what} has {lines} lines, and {most} is the most" if lines > most else None
    if lines <= most:
        return f"{what} keeps the rule now: take it off the list in {LISTS}"
    return f"{what} grew from {allowed} lines to {lines}: split it" if lines > allowed else None


def longest_of_each_name(functions):
    longest = {}
    for function in functions:
        if not function.is_table and function.lines > getattr(longest.get(function.name), "lines", 0):
            longest[function.name] = function
    return longest.values()


def lengths(path, text, functions):
    found = [too_long(f"{path}:1: the file", text.count("\n"), MOST_FILE_LINES, FILES_TO_BE_SPLIT.get(path))]
    for function in longest_of_each_name(functions):
        allowed = FUNCTIONS_TO_BE_SPLIT.get((path, function.name))
        found.append(too_long(f"{path}:{function.first}: {function.name}", function.lines, MOST_FUNCTION_LINES, allowed))
    return [complaint for complaint in found if complaint]


def gone(files, functions):
    """Entries of the lists whose file or function is not there."""
    found = [f"{path}: is not there: take it off the list in {LISTS}" for path in FILES_TO_BE_SPLIT if path not in files]
    for path, name in FUNCTIONS_TO_BE_SPLIT:
        if all(function.name != name for function in functions.get(path, [])):
            found.append(f"{path}: has no {name}: take it off the list in {LISTS}")
    return found


def meaningful_lines(text, tables):
    """(number, line without spaces around it) of the lines that count, outside of tables."""
    rows = []
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        if not THIN.fullmatch(line.strip()) and not any(first <= number <= last for first, last in tables):
            rows.append((number, " ".join(line.split())))
    return rows


def repetitions(lines):
    """Runs of equal lines, each as long as it goes: (path, line), (path, line), how many lines."""
    places = collections.defaultdict(list)
    for path, rows in lines.items():
        for i in range(len(rows) - RUN_LINES + 1):
            same = places[tuple(line for _, line in rows[i : i + RUN_LINES])]
            if not same or same[-1][0] != path or i - same[-1][1] >= RUN_LINES:  # no run repeats itself by overlapping
                same.append((path, i))
    pairs = set()
    for same in places.values():
        pairs.update((same[0], place) for place in same[1:])
    runs = []
    for (path, i), (other, j) in sorted(pairs):
        if ((path, i - 1), (other, j - 1)) in pairs:  # inside a run that is told
            continue
        size = RUN_LINES
        while ((path, i + size - RUN_LINES + 1), (other, j + size - RUN_LINES + 1)) in pairs:
            size += 1
        runs.append(((path, lines[path][i][0]), (other, lines[other][j][0]), size))
    return runs


def too_equal(runs):
    found = []
    for (path, first), (other, second), size in runs:
        if size > REPETITIONS_TO_BE_MERGED.get((path, other), 0):
            found.append(f"{other}:{second}: {size} lines stand in {path}:{first}, too")
    pairs = {(path, other) for (path, _), (other, _), _ in runs}
    for path, other in REPETITIONS_TO_BE_MERGED:
        if (path, other) not in pairs:
            found.append(f"{other}: has no lines of {path} any more: take the pair off the list in {LISTS}")
    return found


def complaints(files):
    """One line for each thing that is wrong in {path: text}."""
    found, functions, lines = [], {}, {}
    for path, text in files.items():
        tables = []
        if path.endswith(CODE):
            try:
                shape = layout(code_only(text))
            except Unbalanced as error:
                found.append(f"{path}: {error}")
                continue
            functions[path], tables = shape.functions, shape.tables
        found += lengths(path, text, functions.get(path, []))
        lines[path] = meaningful_lines(text, tables)
    return found + gone(files, functions) + too_equal(repetitions(lines)) + unchecked(files)
