#!/usr/bin/env python3
"""Writes what follows from the program's own --help: manual pages, completions, the example configuration.

usage: interface_files.py PROGRAM           writes them to generated/
       interface_files.py --check PROGRAM   exit status 1 and a line for each that is not current
"""
import pathlib
import subprocess
import sys

import command_line
import completions
import configuration
import man_pages

HERE = pathlib.Path(__file__).resolve().parent
GENERATED = HERE / "generated"


def files(program):
    """name -> text"""
    commands = command_line.read(program)
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True, timeout=60).stdout.split()[-1]
    pages = [command.page for command in commands]
    made = {}
    for command, page in zip(commands, pages):
        made[f"{page}.1"] = man_pages.render(command, (HERE / "prose" / f"{page}.txt").read_text(), version, pages)
        if command.name == "serve":
            made["serve.conf"] = configuration.render(command)
    made["clrsampler.bash"] = completions.bash(commands)
    made["_clrsampler"] = completions.zsh(commands)
    made["clrsampler.fish"] = completions.fish(commands)
    return made


def main(arguments):
    check = arguments[:1] == ["--check"]
    if len(arguments) != 1 + check:
        print(__doc__, file=sys.stderr)
        return 2
    made = files(arguments[-1])
    there = {path.name: path.read_text() for path in GENERATED.glob("*")}
    if check:
        stale = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
        for name in stale:
            print(f"generated/{name} is not what the program says: run tools/packaging/interface_files.py PROGRAM")
        return bool(stale)
    GENERATED.mkdir(exist_ok=True)
    for name in there.keys() - made.keys():
        (GENERATED / name).unlink()
    for name, text in made.items():
        (GENERATED / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
