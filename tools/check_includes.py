#!/usr/bin/env python3
"""Checks that folders of userspace/ include the folders that the table in docs/contributing/architecture.md allows, and no others.

usage: check_includes.py REPOSITORY      exit status 1, and one line for each include that breaks the table and each right that nothing uses
"""
import pathlib
import re
import sys

DOCUMENT = "docs/contributing/architecture.md"
HEAD = "| folder | may include |"
ROW = re.compile(r"^\| `([a-z0-9_/]+)` \|([^|]*)\|", re.M)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
EVERYWHERE = {"status", "formats"}  # errors; byte_reader.h and utf16.h


def rights(document):
    """folder -> set of other folders that it may include"""
    return {folder: set(re.findall(r"`([a-z0-9_/]+)`", cell)) for folder, cell in ROW.findall(document.partition(HEAD)[2].partition("\n\n")[0])}


def folder_of(path, folders):
    """The longest folder of the table that the path lies in."""
    return max((folder for folder in folders if path.startswith(folder + "/")), key=len, default=None)


def complaints(document, files):
    """document: the text that has the table. files: {path below userspace/: text}"""
    table = rights(document)
    if not table:
        return [f"{DOCUMENT} has no table of folders"]
    found, used = [], {folder: set() for folder in table}
    for path, text in sorted(files.items()):
        folder = folder_of(path, table)
        if folder is None:
            found.append(f"{path}: its folder is not in the table")
            continue
        for include in INCLUDE.findall(text):
            if include not in files:  # a library's, a generated header, or one of include/
                continue
            target = folder_of(include, set(table) | EVERYWHERE)
            if target in {folder} | EVERYWHERE:
                continue
            if target in table[folder]:
                used[folder].add(target)
            else:
                found.append(f"{path}: may not include {include}")
    for folder, may in table.items():
        found += [f"{DOCUMENT}: {folder} includes nothing of {target}" for target in sorted(may - used[folder])]
    return found


def main():
    root = pathlib.Path(sys.argv[1])
    sources = [path for path in (root / "userspace").rglob("*") if path.suffix in (".h", ".cc")]
    found = complaints((root / DOCUMENT).read_text(), {path.relative_to(root / "userspace").as_posix(): path.read_text() for path in sources})
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
