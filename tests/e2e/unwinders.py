"""Compares the stacks that `clrsampler stacks` prints of a stopped process with those of independent unwinders. Pure: texts in, findings out.

Oracles: ClrMD's stack walk, through tests/apps/oracle_names, for managed frames: Microsoft's own unwinder, which finds its way from one managed
part to the next by marks that the runtime keeps. And gdb or eu-stack for native frames. They unwind by .eh_frame and know nothing of managed
code. So only what lies below the first managed frame can be compared, and whole stacks of threads without managed code.
"""
import bisect
import collections
import json
import re

# ip: of a caller the return address. kind: as the printer says; of ClrMD `managed`, `stub` or `runtime`. name may be "".
Frame = collections.namedtuple("Frame", "ip name kind how", defaults=("", "", ""))
Finding = collections.namedtuple("Finding", "tid what ours theirs")

MANAGED_KINDS = ("managed", "jit", "r2r")
# .NET's names of the code that it makes between callers and targets. ClrMD shows them as methods or not at all.
STUB = re.compile(r"\[?stub\b|IL_STUB|\[stub")
ROOTS = ("start_thread", "clone3", "__clone3", "clone", "_start", "__libc_start_main", "__libc_start_call_main")


class BadOutput(Exception):
    """A sentence: how a text breaks the agreed form."""


def parse_ours(text):
    """{tid: [Frame, leaf first]} from JSON lines {"tid":N,"frames":[{"ip":"0x..","name":"..","kind":"..","how":".."},...]}."""
    stacks = {}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            row = json.loads(line)
            frames = [Frame(int(f["ip"], 16), f["name"], f["kind"], f["how"] + (", in doubt" if "doubt" in f else ""))
                      for f in row["frames"]]
            tid = row["tid"]
        except (ValueError, KeyError, TypeError) as error:
            raise BadOutput(f"line {number}: {error!r}: {line[:200]!r}") from None
        if tid in stacks:
            raise BadOutput(f"line {number}: thread {tid} appears twice")
        stacks[tid] = frames
    return stacks


def parse_clrmd(text):
    """{tid: [Frame, leaf first]} from lines `tid ip sp kind type method`."""
    stacks = collections.defaultdict(list)
    for line in text.splitlines():
        tid, ip, _, kind, type_, method = line.split("\t")
        stacks[int(tid)].append(Frame(int(ip, 16), f"{type_}.{method}" if type_ else method, kind))
    return dict(stacks)


def parse_gdb(text):
    """{tid: [Frame, leaf first]} from what GDB_SCRIPT prints."""
    stacks = collections.defaultdict(list)
    for line in text.splitlines():
        match = re.fullmatch(r"frame (\d+) 0x([0-9a-f]+) (.*)", line)
        if match:
            stacks[int(match.group(1))].append(Frame(int(match.group(2), 16), "" if match.group(3) == "None" else match.group(3)))
    return dict(stacks)


# Answers each line of its input. Inlined functions are no frames of the machine, nor are functions that jumped away, which gdb makes up from
# call-site data.
GDB_SCRIPT = """
import gdb, os, sys
for line in sys.stdin:
    gdb.execute("attach " + os.environ["UNWINDERS_PID"], to_string=True)
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        frame, count = gdb.newest_frame(), 0
        while frame is not None and frame.is_valid() and count < 2048:
            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                print("frame", thread.ptid[1], hex(frame.pc()), frame.name())
            try:
                frame = frame.older()
            except gdb.error:
                break
            count += 1
    gdb.execute("detach", to_string=True)
    print(flush=True)
"""


def parse_eu_stack(text):
    """{tid: [Frame, leaf first]} from `eu-stack -p PID`."""
    stacks, tid = collections.defaultdict(list), None
    for line in text.splitlines():
        header = re.fullmatch(r"TID (\d+):", line)
        if header:
            tid = int(header.group(1))
        match = re.match(r"#\d+\s+0x([0-9a-f]+)(?:\s+-\s*1)?(?:\s+(\S+))?", line)
        if match and tid is not None:
            stacks[tid].append(Frame(int(match.group(1), 16), match.group(2) or ""))
    return dict(stacks)


class NativeCode:
    """The addresses that lie in ELF files, from the text of /proc/PID/maps. Precompiled assemblies (.dll) and the runtime's own memory do not;
    those are `other`, if code can run there."""

    def __init__(self, maps):
        self._starts, self._ends, self._native = [], [], []
        for line in maps.splitlines():
            fields = line.split(None, 5)
            path = fields[5] if len(fields) == 6 else ""
            if "x" in fields[1]:
                start, end = (int(word, 16) for word in fields[0].split("-"))
                self._starts.append(start)
                self._ends.append(end)
                self._native.append(path == "[vdso]" or (path.startswith("/") and not path.endswith((".dll", ".exe")) and "doublemapper" not in path
                                                         and not path.startswith(("/memfd:", "/dev/"))))

    def _kind(self, ip):
        at = bisect.bisect_right(self._starts, ip) - 1
        return self._native[at] if at >= 0 and ip < self._ends[at] else None

    def __contains__(self, ip):
        return self._kind(ip) is True

    def other(self, ip):
        return self._kind(ip) is False


def same_ip(ours, theirs):
    """A caller's address may be the return address or lie in the call before it."""
    return theirs - 1 <= ours <= theirs


def is_managed(frame):
    return frame.kind in MANAGED_KINDS and not STUB.search(frame.name)


def bare_name(name):
    """`Ns.Type.Method` for comparison: without generic arguments, nested types' signs and what the spellings differ in."""
    name = re.sub(r"`\d+", "", name)
    # Names that the compiler made of lambdas, local functions, iterators and constructors, which readers get under their names in the source.
    name = re.sub(r"\+<>c(?:__DisplayClass[\d_]+)?(?:\[.*\])?\.<([\w.]+)>b__[\d_]+", r".\1.", name)
    name = re.sub(r"<([\w.]+)>g__(\w+)\|[\d_]+", r"\1.\2", name)
    name = re.sub(r"\+<(\w+)>d__\d+(?:\[.*\])?\.MoveNext$", r".\1", name)
    name = re.sub(r"(\w+)((?:\[.*\])?)\.\.ctor$", r"\1\2.\1", name)
    name = re.sub(r"(\w+)((?:\[.*\])?)\.\.cctor$", r"\1\2.static \1", name)
    name = name.replace("+", ".")
    while (shorter := re.sub(r"\[[^\[\]]*\]|<[^<>]*>", "", name)) != name:
        name = shorter
    return name


def compare_managed(ours, clrmd):
    """Findings on the managed frames of threads that ClrMD knows, and how many frames were compared.

    Where a thread is in native code, ClrMD finds the managed frames above the innermost mark. A helper of the runtime that was called without one
    hides its callers from ClrMD, so there ours may have more frames at the leaf's end."""
    findings, compared = [], 0
    for tid, truth in sorted(clrmd.items()):
        marked, theirs = False, []
        for frame in truth:
            # Below such a mark ClrMD tells the place that the mark holds: the right method, but not the address of the return.
            if frame.kind == "managed":
                theirs.append((frame, marked))
            marked = frame.kind == "runtime"
        if tid not in ours:
            if theirs:
                findings.append(Finding(tid, "no such thread in ours", "", _text([f for f, _ in theirs])))
            continue
        mine = [frame for frame in ours[tid] if is_managed(frame)]
        if ours[tid] and not is_managed(ours[tid][0]):
            mine = mine[max(len(mine) - len(theirs), 0):]
        for at in range(max(len(mine), len(theirs))):
            if at >= len(theirs):
                findings.append(Finding(tid, f"{len(mine) - at} managed frames more than ClrMD's {at}", _text(ours[tid]), _text([f for f, _ in theirs])))
                break
            if at >= len(mine):
                findings.append(Finding(tid, f"ends after {at} of {len(theirs)} managed frames", _text(ours[tid]), _text([f for f, _ in theirs])))
                break
            frame, after_mark = theirs[at]
            if not same_ip(mine[at].ip, frame.ip) and not (after_mark and bare_name(mine[at].name) == bare_name(frame.name)):
                findings.append(Finding(tid, f"managed frame {at}: {mine[at].ip:x} {mine[at].name}, ClrMD has {frame.ip:x} {frame.name}", _text(ours[tid]),
                                        _text([f for f, _ in theirs])))
                break
            compared += 1
    return findings, compared


def compare_native(ours, theirs, native):
    """Findings on the frames from the leaf to the first managed one, by an unwinder that knows ELF files only. native: a NativeCode."""
    findings, compared = [], 0
    for tid, truth in sorted(theirs.items()):
        count = next((i for i, frame in enumerate(truth) if frame.ip not in native), len(truth))
        if count and tid not in ours:
            findings.append(Finding(tid, "no such thread in ours", "", _text(truth)))
            continue
        mine = ours.get(tid, [])
        for at in range(count):
            if at >= len(mine):
                if not _ends_at_root(truth, at, mine):
                    findings.append(Finding(tid, f"ends after {at} of {count} native frames", _text(mine), _text(truth)))
                break
            if not same_ip(mine[at].ip, truth[at].ip):
                findings.append(Finding(tid, f"native frame {at}: {mine[at].ip:x} {mine[at].name}, not {truth[at].ip:x} {truth[at].name}", _text(mine),
                                        _text(truth)))
                break
            compared += 1
        else:
            # A stack without managed code is compared to its end. One that goes on must go on in managed code, if theirs is not lost.
            if count == len(truth) and len(mine) > count:
                findings.append(Finding(tid, f"{len(mine) - count} frames more than {count}", _text(mine), _text(truth)))
            elif 0 < count < len(truth) and not native.other(truth[count].ip):
                pass
            elif 0 < count < len(truth) and len(mine) > count and mine[count].ip in native:
                findings.append(Finding(tid, f"frame {count}, {mine[count].ip:x} {mine[count].name}, is native; the caller is not", _text(mine), _text(truth)))
            elif 0 < count < len(truth) and len(mine) == count:
                findings.append(Finding(tid, f"ends where managed code called native code, after {count} frames", _text(mine), _text(truth)))
    return findings, compared


def _ends_at_root(truth, at, mine):
    """libc's outermost function is where a walk may end: above it there is only the first instruction of the thread."""
    return bool(mine) and at == len(truth) - 1 and any(mine[-1].name.startswith(root) for root in ROOTS)


def same_leaves(before, after):
    """Threads whose innermost frame did not move between two readings of one unwinder: the process stood still."""
    return all(after.get(tid, [None])[:1] == frames[:1] for tid, frames in before.items())


def _text(frames, most=60):
    return " < ".join(f"{f.ip:x} {f.name}{f' ({f.how})' if f.how else ''}" for f in frames[:most]) + (" ..." if len(frames) > most else "")
