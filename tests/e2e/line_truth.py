"""Do frames of tests/apps/lines have the lines that its runtime tells? Its threads stand still and have printed what StackTrace says."""
import collections
import os
import re

import runtimes

PROGRAM_SOURCE = os.path.join(runtimes.SOURCE, "tests", "apps", "lines", "Program.cs")


def line_of(comment):
    with open(PROGRAM_SOURCE, encoding="utf-8") as source:
        (number,) = [number for number, text in enumerate(source, 1) if text.rstrip().endswith("// " + comment)]
    return number


# How the program is run -> environment: code of other compilers, tiers and places.
WAYS = {
    "as usual": {},
    "optimised at once": {"DOTNET_TieredCompilation": "0"},
    "never precompiled": {"DOTNET_ReadyToRun": "0", "DOTNET_TieredPGO": "0"},
    "loops optimised at once": {"DOTNET_TC_QuickJitForLoops": "0", "DOTNET_ReadyToRun": "0"},
}

HANDLERS = {method: line_of(f"a handler of {method}") for method in ("Finally", "Filters", "Nested")}


def told(output):
    """{tid: [(method, file, line, column)]}, innermost first, of the lines that the program prints."""
    stacks = collections.defaultdict(list)
    for line in output:
        fields = line.rstrip("\n").split("\t")
        if len(fields) == 5:
            stacks[int(fields[0])].append((fields[1], fields[2], int(fields[3]), int(fields[4])))
    return stacks


def _compare_thread(told, frames):
    """(equal, silent, differing) frames of one thread. Where a handler runs, its frame has its own line, and the runtime says that of the call
    which threw. Where code has no line the runtime says the first one of the method, and we say none."""
    equal, silent, wrong, place, handled = 0, 0, [], 0, set()
    for method, file, line, column in told:
        # Our stacks lead from a filter to its method's caller. The frames that threw lie between.
        if not file or method == "Throw" or method in handled:
            continue
        handler = HANDLERS.get(method)
        handled.update([method] if handler else [])
        simple = re.compile(r"(::|^)" + re.escape(method) + r"(\[|\(|$)")
        ours = [(at, frames[at]) for at in range(place, len(frames)) if simple.search(frames[at]["name"])]
        same = [at for at, frame in ours if frame.get("file") == file and
                (frame["line"] == handler if handler else (frame["line"], frame["column"]) == (line, column))]
        if same:
            equal += 1
            place = same[0] + 1
        elif ours and "line" not in ours[0][1]:
            silent += 1
            place = ours[0][0] + 1
        else:
            wrong.append(((method, file, line, column), ours[:2]))
    # Beside those that the runtime tells there is the one that asked it. Further frames were stepped over.
    if not wrong and sum("line" in frame for frame in frames) > equal + 1:
        wrong.append(("frames that the runtime does not tell", frames))
    return equal, silent, wrong


def compare(stacks, ours):
    """Frames that are equal, frames where we have no line, and what differs. stacks: what `told` gives; ours: {tid: frames of `stacks --json`}"""
    equal, silent, wrong = 0, 0, []
    for tid, stack in stacks.items():
        one, none, different = _compare_thread(stack, ours[tid])
        equal, silent, wrong = equal + one, silent + none, wrong + different
    return equal, silent, wrong
