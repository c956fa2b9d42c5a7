#!/usr/bin/env python3
"""Checks the shape of sources: how long functions and files are, that no code stands in two places, and that a class for
the main loop only checks its thread.

usage: check_structure.py REPOSITORY      exit status 1 and one line for each thing that is wrong
"""
import pathlib
import sys

from structure.rules import SOURCES, complaints

FOLDERS = ["userspace", "bpf", "include"]
GENERATED = {"built", "node_modules"}  # folders


def read(root):
    """{path: text}"""
    paths = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in SOURCES)
    paths = [path for path in paths if GENERATED.isdisjoint(path.parts)]
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def main():
    files = read(pathlib.Path(sys.argv[1]))
    if len(files) < 2:
        print("no sources")
        return 1
    found = complaints(files)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
