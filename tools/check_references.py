#!/usr/bin/env python3
"""Checks that documents, comments and messages name only files, headings, tests, labels, options and presets that are there.

usage: check_references.py REPOSITORY      exit status 1 and one line for each name of something that is not there
"""
import os
import pathlib
import sys

from references.inventory import Inventory
from references.rules import complaints

NOT_OURS = {".git", "build", "node_modules", "__pycache__", "bin", "obj"}  # folders that .gitignore has, too
MOST_BYTES = 1 << 20  # larger files are data


def read(root):
    """{path: text, or None for what is no text}"""
    files = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in NOT_OURS]
        for name in names:
            path = pathlib.Path(folder, name)
            try:
                text = path.read_text(encoding="utf-8") if path.stat().st_size < MOST_BYTES else None
            except UnicodeDecodeError:
                text = None
            files[path.relative_to(root).as_posix()] = text
    return files


def main():
    found = complaints(Inventory(read(pathlib.Path(sys.argv[1]))))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
