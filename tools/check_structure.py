#!/usr/bin/env python3
"""Checks that production code stays small: its functions, its files, and no run of lines that stands twice.

usage: check_structure.py REPOSITORY      exit status 1 and one line for each thing that is too long or stands twice

A function that only declares options is a table, and so is one that returns a static table. Both may be as long as they are.
"""
import collections
import pathlib
import re
import sys

from structure.functions import functions, without_noise

MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = 500
RUN = 6  # equal lines

# What is still longer, with its length, and what still stands twice. These may only become smaller.
LONGER_FUNCTIONS = {
    "bpf/allocation_hooks.bpf.c: allocated": 69,
    "bpf/user_stack.bpf.c: __attribute__": 70,
    "userspace/clr/memory/memory_methods.cc: MemoryMethods::Attach": 88,
    "userspace/clr/memory/memory_methods.cc: MemoryMethods::Look": 95,
    "userspace/clr/memory/memory_methods.cc: MemoryMethods::Resolve": 67,
    "userspace/clr/memory/runtime_memory.cc: RuntimeMemory::Find": 61,
    "userspace/clr/memory/runtime_memory.cc: RuntimeMemory::NamePrecompiled": 66,
    "userspace/clr/memory/runtime_types.cc: RuntimeTypes::Method": 64,
    "userspace/export/recent_history.cc: Timeline": 63,
    "userspace/formats/elf/cfi_program.cc: Execute": 73,
}
LONGER_FILES = {
    "bpf/user_stack.bpf.c": 501,
    "userspace/clr/jit_methods.cc": 525,
    "userspace/clr/memory/memory_methods.cc": 745,
    "userspace/clr/memory/runtime_memory.cc": 578,
    "userspace/formats/profile/pprof_reader.cc": 504,
    "userspace/pipeline/recorder.cc": 551,
}
TWICE = {
    # One interface of two machines.
    ("userspace/clr/hooks/code_scan_arm64.h", "userspace/clr/hooks/code_scan_x64.h"),
    # Initialisers with names.
    ("userspace/pipeline/address_namer.cc", "userspace/pipeline/event_stacks.cc"),
}

FOLDERS = {"userspace": (".cc", ".h"), "bpf": (".c", ".h"), "include": (".h",)}
TABLE = re.compile(r"^(?:Declare\w*Options|DeclareOptions|WriterTable)$")
SAYS_NOTHING = re.compile(r"^(?:namespace\b.*|[{}()\];,]*|(?:public|private|protected):)$")
# A row of a table: values and nothing that acts.
DATA = re.compile(r"^[^;()=]*,$|^\{.*\},?$|^\.\w+ = [^;()]*,$")


def sources(root):
    for folder, suffixes in FOLDERS.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and "vmlinux" not in path.name:
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def code_lines(text):
    """(line number, text) of lines that say something."""
    blank = without_noise(text).split("\n")
    for number, line in enumerate(text.split("\n"), 1):
        if not SAYS_NOTHING.match(blank[number - 1].strip()):
            yield number, line.strip()


def repeated(files):
    """(place, other place) of runs of equal lines; of a longer run only its beginning."""
    runs = collections.defaultdict(list)
    for path, text in files:
        lines = list(code_lines(text))
        for i in range(len(lines) - RUN + 1):
            run = tuple(line for _, line in lines[i : i + RUN])
            if sum(DATA.match(line) is None for line in run) > 1:
                runs[run].append((path, i, lines[i][0]))
    last = {}
    for places in runs.values():
        for (path, i, line), (other, _, other_line) in zip(places, places[1:]):
            goes_on = last.get((path, other)) == i - 1
            last[path, other] = i
            if not goes_on:
                yield (path, line), (other, other_line)


def complaints(files, longer_files=LONGER_FILES, longer_functions=LONGER_FUNCTIONS, twice=TWICE):
    files = list(files)
    for path, text in files:
        lines = text.count("\n")
        most = longer_files.get(path, MAX_FILE_LINES)
        if lines > most:
            yield f"{path}:1: the file has {lines} lines, and {most} are the most"
        for name, first, end in functions(text):
            most = longer_functions.get(f"{path}: {name}", MAX_FUNCTION_LINES)
            if end - first + 1 > most and not TABLE.match(name.split("::")[-1]):
                yield f"{path}:{first}: {name} has {end - first + 1} lines, and {most} are the most"
    for (path, line), (other, other_line) in repeated(files):
        if (path, other) not in twice:
            yield f"{path}:{line}: {RUN} lines are equal to those at {other}:{other_line}"


def main():
    found = list(complaints(sources(pathlib.Path(sys.argv[1]))))
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
