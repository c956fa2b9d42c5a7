#!/usr/bin/env python3
"""Checks documents, texts of manual pages, messages, help, comments of sources and texts of pages for plain English.

Length of sentences, fragments, programs that are "who", words of history, long cells and long lines are found.

usage: check_prose.py REPOSITORY            exit status 1 and one line for each thing that is wrong
       check_prose.py --means REPOSITORY    prints how many words a sentence of each text has
       check_prose.py --wrap FILE...        fills every paragraph of these documents to 120 columns
"""
import argparse
import pathlib
import sys

from prose import sources
from prose.rules import complaints, mean
from prose.wrapping import wrapped

DOCUMENTS = ["README.md", "CONTRIBUTING.md", "docs/*.md", "docs/contributing/*.md", "docs/measurements/*.md", "tools/packaging/prose/*.txt", "deploy/**/README*"]


def documents(root):
    """{path: text}"""
    paths = sorted({path for pattern in DOCUMENTS for path in root.glob(pattern)})
    return {path: path.read_text(encoding="utf-8") for path in paths}


def main():
    arguments = argparse.ArgumentParser(usage="check_prose.py [--means] REPOSITORY | --wrap FILE...")
    arguments.add_argument("--wrap", nargs="+", type=pathlib.Path, metavar="FILE")
    arguments.add_argument("--means", action="store_true")
    arguments.add_argument("repository", nargs="?", type=pathlib.Path)
    chosen = arguments.parse_args()
    if chosen.wrap:
        for path in chosen.wrap:
            path.write_text(wrapped(path.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    if not chosen.repository:
        arguments.error("which repository?")
    found = 0
    for path, text in documents(chosen.repository).items():
        name = path.relative_to(chosen.repository).as_posix()
        if chosen.means:
            print(f"{mean(text):5.1f} {name}")
        else:
            for line, complaint in complaints(text):
                print(f"{name}:{line}: {complaint}")
                found += 1
    if chosen.means:
        for name, words in sources.means(chosen.repository).items():
            print(f"{words:5.1f} {name}")
    else:
        for name, line, complaint in sources.complaints(chosen.repository):
            print(f"{name}:{line}: {complaint}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
