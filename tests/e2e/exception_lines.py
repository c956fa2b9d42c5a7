"""Where tests/apps/exceptions throws: each such line of its source has a mark."""
import os
import re

import runtimes

SOURCE = os.path.join(runtimes.SOURCE, "tests", "apps", "exceptions", "Program.cs")


def lines():
    """{(method, type): line}; the types without their namespaces and arguments."""
    found = {}
    with open(SOURCE, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            mark = re.search(r"// line: (\w+), (\w+)", line)
            if mark:
                found[mark.groups()] = number
    return found


def line_of(marked, method, kind):
    return marked[method, re.sub(r"<.*|.*\.", "", kind)]


def throwers(stacks):
    """[(method, type, line, file, caller, count)] of the stacks of `exceptions --json --lines`."""
    for stack in stacks:
        thrower, caller = stack["frames"][0], stack["frames"][1]
        yield (thrower["name"].rpartition(".")[2], stack["type"], thrower.get("line"), os.path.basename(thrower.get("file", "")), caller["name"],
               stack["count"])
