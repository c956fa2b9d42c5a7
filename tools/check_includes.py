#!/usr/bin/env python3
"""Checks that folders of userspace/ include only the folders that the table in docs/contributing/architecture.md allows.

usage: check_includes.py REPOSITORY      exit status 1 and one line for each include that breaks the table
"""
import pathlib
import re
import sys

HEAD = "| folder | may include |"
ROW = re.compile(r"^\| `([a-z_/]+)` \|([^|]*)\|", re.M)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
EVERYWHERE = {"status", "formats", "clrsampler"}  # errors, byte_reader.h and utf16.h, and the wire format in include/


def allowed_includes(document):
    """folder -> set of folders it may include, its own included."""
    table = {}
    for folder, cell in ROW.findall(document.partition(HEAD)[2].partition("\n\n")[0]):
        table[folder] = {folder} | EVERYWHERE | set(re.findall(r"`([a-z_/]+)`", cell))
    return table


def folder_of(path, folders):
    """The longest folder of the table that the path lies in."""
    matches = [folder for folder in folders if path.startswith(folder + "/")]
    return max(matches, key=len) if matches else None


def main():
    root = pathlib.Path(sys.argv[1])
    table = allowed_includes((root / "docs/contributing/architecture.md").read_text())
    if len(table) < 10:
        print("docs/contributing/architecture.md has no table of folders")
        return 1
    errors = 0
    for file in sorted((root / "userspace").rglob("*.[hc]*")):
        if file.suffix not in (".h", ".cc"):
            continue
        path = file.relative_to(root / "userspace").as_posix()
        folder = folder_of(path, table)
        if folder is None:
            print(f"{path}: its folder is not in the table")
            errors += 1
            continue
        for include in INCLUDE.findall(file.read_text()):
            if not (root / "userspace" / include).exists():  # a library's or a generated header
                continue
            target = folder_of(include, list(table) + list(EVERYWHERE))
            if include in ("formats/byte_reader.h", "formats/utf16.h") and folder.startswith("formats/"):
                continue
            if target is None or target not in table[folder]:
                print(f"{path}: may not include {include}")
                errors += 1
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
