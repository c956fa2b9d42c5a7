"""Folded stacks: a parser, and a strict checker of the rules that flamegraph.pl, difffolded.pl, inferno and speedscope need.

Written from the tools' own reading rules (FlameGraph flamegraph.pl and difffolded.pl, inferno src/flamegraph, speedscope
src/import/bg-flamegraph.ts), independently of the program under test.
"""
import collections
import re

GC_ROLE = re.compile(r"\[gc gen[012]( blocking)?\]|\[gc background\]")
JIT_ROLE = re.compile(r"\[jit .+ \w+\]")
SUSPENDING_ROLE = re.compile(r"\[suspending threads\]")
SUFFIX = re.compile(r"_\[(.)\]$")
MAX_FRAME_BYTES = 1100
# A number at the end, which flamegraph.pl would take for a column of a differential profile.
TRAILING_NUMBER = re.compile(r"\s+\d+(?:\.\d*)?$")


class Profile:
    """stacks: list of (tuple of frames from the root, comm first; count)."""

    def __init__(self, stacks):
        self.stacks = stacks

    @property
    def total(self):
        return sum(count for _, count in self.stacks)

    def leaves(self):
        leaves = collections.Counter()
        for frames, count in self.stacks:
            leaves[frames[-1]] += count
        return leaves

    def frames(self, suffix):
        """Counter of frames that carry a suffix letter, once per occurrence and sample."""
        found = collections.Counter()
        for frames, count in self.stacks:
            for frame in frames[1:]:
                if frame.endswith(f"_[{suffix}]"):
                    found[frame] += count
        return found

    def with_frame(self, predicate):
        return sum(count for frames, count in self.stacks if any(predicate(bare(f)) for f in frames))

    def managed_unnamed(self):
        """(named, unnamed) managed frames."""
        named = unnamed = 0
        for frame, count in self.frames("j").items():
            if is_unnamed(frame):
                unnamed += count
            else:
                named += count
        return named, unnamed


def is_role(frame):
    """A frame that says what the frames above it do for the runtime; no frame of its own (docs/jit.md)."""
    return any(role.fullmatch(frame) for role in (GC_ROLE, JIT_ROLE, SUSPENDING_ROLE))


def is_unnamed(frame):
    """An unnamed managed frame reads `[why]`. Names in brackets are those of stubs, and `[dynamic] ` before a dynamic method's name."""
    return frame.startswith("[") and not bare(frame).startswith(("[stub ", "[stub]", "[dynamic] ")) and not is_role(frame)


def bare(frame):
    return SUFFIX.sub("", frame)


def parse(data):
    stacks = []
    for line in data.decode("utf-8").split("\n"):
        if line:
            stack, _, count = line.rpartition(" ")
            stacks.append((tuple(stack.split(";")), int(count)))
    return Profile(stacks)


def _frame_faults(frame, is_root):
    if not frame:
        yield "empty frame"
        return
    if frame != frame.strip():
        yield "white space at the edge of a frame"
    if "  " in frame:
        yield "two spaces in a row"
    if any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in frame):
        yield "control character"
    if any(c in "\u2028\u2029\ufeff\ufffe\uffff" for c in frame):
        yield "character that XML or a line splitter takes apart"
    if len(frame.encode("utf-8")) > MAX_FRAME_BYTES:
        yield f"frame longer than {MAX_FRAME_BYTES} bytes"
    text = bare(frame)
    if TRAILING_NUMBER.search(text) or TRAILING_NUMBER.search(frame):
        yield "frame ends in a number that flamegraph.pl takes for a count"
    match = SUFFIX.search(frame)
    if match and match.group(1) not in "kj":
        yield f"suffix {match.group(0)}: this program writes only _[k] and _[j]"
    if text.lower() in ("[unknown]", "unknown", "??", "[]"):
        yield "an unnamed frame must say why it has no name"
    if is_root and (" " in frame or match):
        yield "the first frame is the command name: no spaces, no suffix"


def check(data):
    """Every violation as `line N: sentence`; an empty list means clean. data: the bytes of a folded file."""
    faults = []
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return [f"not UTF-8 at byte {error.start}"]
    if not text:
        return []
    if not text.endswith("\n"):
        faults.append("the last line has no line end")
    stacks_seen, stacks, lines = set(), [], []
    for number, line in enumerate(text.split("\n")[:-1] if text.endswith("\n") else text.split("\n"), 1):
        lines.append(line)
        match = re.fullmatch(r"(.+) ([1-9][0-9]*)", line, re.DOTALL)
        if not match:
            faults.append(f"line {number}: not `stack count` with one space and a positive whole count: {line[:80]!r}")
            continue
        stack = match.group(1)
        stacks.append(stack)
        if stack in stacks_seen:
            faults.append(f"line {number}: the stack appears twice")
        stacks_seen.add(stack)
        frames = stack.split(";")
        for i, frame in enumerate(frames):
            faults.extend(f"line {number}, frame {i}: {fault}: {frame[:120]!r}" for fault in _frame_faults(frame, i == 0))
        kernel = [f.endswith("_[k]") for f in frames]
        if any(a and not b for a, b in zip(kernel, kernel[1:])):
            faults.append(f"line {number}: a frame of user code above a kernel frame: {stack[-300:]!r}")
    encoded = [s.encode() for s in stacks]
    if encoded != sorted(encoded) and [line.encode() for line in lines] != sorted(line.encode() for line in lines):
        faults.append("lines are not sorted")
    return faults


DIFFERENCE_LINE = re.compile(r"(.+) (0|[1-9][0-9]*) (0|[1-9][0-9]*)")


def check_difference(data):
    """The same for lines `stack BEFORE AFTER`, which difffolded.pl writes and flamegraph.pl draws. Both counts are whole, and not both 0."""
    faults, stacks = [], []
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n")[:-1], 1):
        match = DIFFERENCE_LINE.fullmatch(line)
        if not match or match[2] == match[3] == "0":
            faults.append(f"line {number}: not `stack before after` with two whole counts, one of them positive: {line[:80]!r}")
        stacks.append((match[1] if match else line) + " 1\n")
    if data and not data.endswith(b"\n"):
        faults.append("the last line has no line end")
    return faults + check("".join(stacks).encode())


def parse_difference(data):
    """List of (tuple of frames from the root, count before, count after)."""
    rows = []
    for line in data.decode("utf-8").splitlines():
        stack, before, after = line.rsplit(" ", 2)
        rows.append((tuple(stack.split(";")), int(before), int(after)))
    return rows


def flamegraph_rows(data):
    """The same as flamegraph.pl understands it: a number at the end of a line is a count, and one before that is another."""
    rows = []
    for line in data.decode("utf-8").splitlines():
        counts = []
        while len(counts) < 2 and (match := TRAILING_NUMBER.search(line)):
            counts.insert(0, float(match[0]))
            line = line[:match.start()]
        rows.append((tuple(line.split(";")), *counts))
    return rows
