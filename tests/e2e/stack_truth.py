"""Judges folded stacks by what the profiled program says can be on its stacks. Pure: texts in, counts out.

The truth is the JSON that tests/apps/shapes prints behind `chains `:

    {"mode": "...", "chains": [[...], ...], "optional": [[...], ...], "prefix": "constant"}

A chain goes from the first frame of a thread's own code to the leaf. Its words:

    Name          exactly this frame
    Name*1000     exactly so many of it
    ~gap, ~gap+   any number of frames of the runtime of this kind (GAPS), at least one with `+`; nothing but the named kind is allowed, and
                  without such a word two frames follow each other directly

The instruction pointer is in some method of a chain, so a chain that ends early is right: the leaf of a sample is a fact, what can be wrong is
the way to it. Below the last frame of the program's own there may be the kernel, and frames of others as `_fault_below` says.

A stack is judged to be:
    exact      frame for frame a chain, from the thread's start
    missing    frames of a chain are left out
    invented   a frame that is in no chain, or not in this place
    cut        the thread's start was not reached
    unnamed    right as far as can be told, but a frame has no name
    elsewhere  nothing of the program's own in it, and the thread's start reached: other threads. Not counted as judged
"""
import collections
import math
import re

import folded

# The truth speaks of these frames. Functions that are declared in Shapes.Native are code of libraries; on NativeAOT the stub that calls one has
# its name.
OWN = re.compile(r"Shapes\.(?!Native\.)|shapes_|\[dynamic\] Shapes")
# Threads and programs of libc begin here. Frames above them (`_start`, `clone3`) have unwind data that says: the end.
STARTS = re.compile(r"(__)?clone3?|start_thread|_start|__libc_start_main.*|__libc_start_call_main")
UNNAMED_START = re.compile(r"[^;!]+!0x[0-9a-f]+")  # `_start` of a program without symbols
STUB = r"\[stub(?: .*)?\]"
GAPS = {
    # Frames that stand between caller and target: (pattern of managed frames, pattern of native frames).
    "stub": (STUB, None),
    "pinvoke": (STUB + r"|Shapes\.Native\.\w+", None),
    "reverse": (STUB + r"|Internal_CompilerGenerated__Module___<Reverse\w+Stub>\w+", None),
    "tail-helper": (STUB + r"|System\.Runtime\.CompilerServices\.RuntimeHelpers\.DispatchTailCalls", None),
    "async": (STUB + r"|System\.Runtime\.CompilerServices\..*|System\.Threading\..*", None),
    "framework": (STUB + r"|(System|Interop)\..*", None),
    "array-sort": (r"System\.Array\..*|System\.Collections\.Generic\..*|System\.(Span|MemoryExtensions).*", None),
    "libc": (None, r"libc\.so\.6!0x[0-9a-f]+|\[plt .*\]|_*qsort(_r)?|msort_with_tmp.*|.*introsort.*"),
    "throw": (STUB + r"|System\.Runtime\.(EH|StackFrameIterator|ExceptionServices|InternalCalls)\b.*|System\.(Exception|AppContext)\..*", r".*"),
}
LONG_WAY = 5
KINDS = ("exact", "missing", "invented", "cut", "unnamed", "elsewhere")

# exact: where in the chain the stack ends is `whole` for the number of the chain whose last frame it has, else None.
Judgement = collections.namedtuple("Judgement", "kind why chain", defaults=("", None))


class BadTruth(Exception):
    """A sentence: what is wrong with the truth."""


class _Gap:
    def __init__(self, word):
        self.needed = word.endswith("+")
        name = word[1:].removesuffix("+")
        if name not in GAPS:
            raise BadTruth(f"no gap is called {name}")
        self.managed, self.native = (pattern and re.compile(pattern) for pattern in GAPS[name])

    def takes(self, frame):
        if folded.is_unnamed(frame):
            return False
        pattern = self.managed if is_managed(frame) else self.native
        return pattern is not None and pattern.fullmatch(folded.bare(frame)) is not None


class _Chain:
    """names[i] is separated from names[i - 1] by gaps[i], a list that is mostly empty; gaps[len(names)] is what may follow the leaf."""

    def __init__(self, words):
        self.names, self.gaps = [], [[]]
        for word in words:
            if word.startswith("~"):
                self.gaps[-1].append(_Gap(word))
                continue
            name, _, times = word.partition("*")
            for _ in range(int(times or 1)):
                self.names.append(name)
                self.gaps.append([])
        if not self.names or self.gaps[0]:
            raise BadTruth(f"a chain begins with a method: {words}")


def is_managed(frame):
    return frame.endswith("_[j]")


def is_own(frame):
    # On the way to a function of a library the machine passes its entry in the PLT: true, and no frame of the program's.
    return OWN.match(frame) is not None and not frame.endswith("@plt")


def reaches_start(frames):
    """Whether a stack, from the root and without the command name, begins where its thread does."""
    names = [folded.bare(frame) for frame in frames[:2]]
    if UNNAMED_START.fullmatch(names[0]) and names[1:] and names[1].startswith("__libc_start_main"):
        return True
    return STARTS.fullmatch(names[0]) is not None


class Truth:
    def __init__(self, data):
        self.mode = data["mode"]
        self.required = len(data["chains"])
        self.chains = [_Chain(words) for words in [*data["chains"], *data["optional"]]]
        if data["prefix"] not in ("constant", "any"):
            raise BadTruth(f"prefix {data['prefix']!r}")
        self.prefix_is_constant = data["prefix"] == "constant"

    def name(self, chain):
        names = self.chains[chain].names
        return f"{names[0]} .. {names[-1]} ({len(names)})"

    def judge(self, stack):
        """stack: frames from the root, without the command name."""
        frames = list(stack)
        while frames and frames[-1].endswith("_[k]"):
            frames.pop()
        if not frames:
            return Judgement("elsewhere", "kernel only")
        reached = reaches_start(frames)
        own = [i for i, frame in enumerate(frames) if is_own(frame)]
        if not own:
            return Judgement("elsewhere") if reached else Judgement("cut", f"begins at {frames[0]}, nothing of the program's own")
        first, last = own[0], own[-1]
        inside, below = frames[first:last + 1], frames[last + 1:]
        results = [self._match(chain, inside, below) for chain in self.chains]
        for number, (fault, _) in enumerate(results):
            if fault is None:
                if not reached:
                    return Judgement("cut", f"begins at {frames[0]}")
                # The longest chain of which this is a part says nothing more.
                number = next((n for n, (f, w) in enumerate(results) if f is None and w), number)
                unnamed = next((f for f in frames if folded.is_unnamed(f)), None)
                if unnamed:
                    return Judgement("unnamed", unnamed)
                return Judgement("exact", "", number if results[number][1] else None)
        return self._explain([folded.bare(f) for f in inside if is_own(f)], inside, results, reached)

    @staticmethod
    def _match(chain, inside, below):
        """(fault or None, whether the leaf was reached). A fault: (how many names were matched, sentence, kind)."""
        at = matched = 0
        while at < len(inside):
            if matched == len(chain.names):
                return (matched, f"{inside[at]} below the leaf", "invented"), False
            for gap in chain.gaps[matched]:
                taken = 0
                while at < len(inside) and not is_own(inside[at]) and gap.takes(inside[at]):
                    at += 1
                    taken += 1
                if gap.needed and not taken:
                    kind = "missing" if is_own(inside[at]) else "invented"
                    return (matched, f"{inside[at]} directly below {chain.names[matched - 1]}", kind), False
            if folded.bare(inside[at]) != chain.names[matched]:
                return (matched, f"{inside[at]} where {chain.names[matched]} belongs", "invented"), False
            at += 1
            matched += 1
        whole = matched == len(chain.names)
        fault = _fault_below(below, chain.gaps[matched] if whole else None)
        return (None, whole) if fault is None else ((matched, fault, "invented"), False)

    def _explain(self, own, inside, results, reached):
        """Why a stack that is no chain is none. Judged by the chain that is nearest."""
        why = max((fault for fault, _ in results), key=lambda fault: fault[0])[1]
        unnamed = next((f for f in inside if folded.is_unnamed(f)), None)
        # The program's own frames are a chain's, and what lies between them is too little or too much.
        near = [fault for chain, (fault, _) in zip(self.chains, results) if own == chain.names[:len(own)]]
        if near:
            _, why, kind = max(near, key=lambda fault: fault[0])
            return Judgement("unnamed", unnamed) if unnamed else Judgement(kind, why)
        for chain in self.chains:
            if not reached and any(own == chain.names[i:i + len(own)] for i in range(1, len(chain.names) - len(own) + 1)):
                return Judgement("cut", f"begins at {inside[0]}")
        for chain in self.chains:
            if _is_subsequence(own, chain.names):
                if unnamed:
                    return Judgement("unnamed", unnamed)
                return Judgement("missing", why)
        return Judgement("invented", why)


def _fault_below(below, gaps):
    """The frames that may follow the last one of the program's own. gaps: None behind a frame that may call things, else what may follow the leaf.

    A burning leaf calls no managed code by itself; native code it does: helpers of the compiler for loops and counters, and signals."""
    if gaps is None:
        return None
    for frame in below:
        if is_managed(frame) and not folded.is_unnamed(frame) and not re.fullmatch(STUB, folded.bare(frame)) and not any(gap.takes(frame) for gap in gaps):
            return f"{frame} below the leaf"
    return None


def _is_subsequence(few, many):
    rest = iter(many)
    return all(name in rest for name in few)


class Verdict:
    """counts: samples by kind. whole: samples by number of the chain whose leaf they have. worst(): what is not exact."""

    def __init__(self, mode):
        self.mode = mode
        self.counts = collections.Counter({kind: 0 for kind in KINDS})
        self.whole = collections.Counter()
        self._offending = {kind: collections.Counter() for kind in KINDS}
        self._why = {}

    def add(self, stack, count, judgement):
        self.counts[judgement.kind] += count
        if judgement.kind == "exact" and judgement.chain is not None:
            self.whole[judgement.chain] += count
        if judgement.kind != "exact":
            self._offending[judgement.kind][stack] += count
            self._why[stack] = judgement.why

    @property
    def judged(self):
        return sum(count for kind, count in self.counts.items() if kind != "elsewhere")

    @property
    def faults(self):
        return self.judged - self.counts["exact"]

    @property
    def share(self):
        return self.counts["exact"] / self.judged if self.judged else 0.0

    def worst(self, each=3, kinds=("invented", "missing", "cut", "unnamed")):
        lines = []
        for kind in kinds:
            for stack, count in self._offending[kind].most_common(each):
                lines.append(f"  {count} {kind}: {self._why[stack]}\n    {_shortened(stack)}")
        return "\n".join(lines)

    def __str__(self):
        counts = ", ".join(f"{count} {kind}" for kind, count in self.counts.items() if count)
        return f"{self.mode}: {100 * self.share:.3f} % of {self.judged} exact ({counts})" + (f"\n{self.worst()}" if self.faults else "")


def _shortened(stack):
    """Runs of one frame as one word."""
    words, previous, times = [], None, 0
    for frame in [*stack, None]:
        if frame == previous:
            times += 1
            continue
        if previous is not None:
            words.append(previous if times == 1 else f"{previous}*{times}")
        previous, times = frame, 1
    text = ";".join(words)
    return text if len(text) < 3000 else f"{text[:1500]} ... {text[-1500:]}"


def judge(profile, truth):
    """A Verdict on a folded.Profile."""
    judged = [(stack[1:], count, truth.judge(stack[1:])) for stack, count in profile.stacks]
    if truth.prefix_is_constant:
        judged = _judge_prefixes(judged)
    verdict = Verdict(truth.mode)
    for stack, count, judgement in judged:
        verdict.add(stack, count, judgement)
    return verdict


def _prefix(stack):
    first = next(i for i, frame in enumerate(stack) if is_own(frame))
    return stack[first], stack[:first]


def _judge_prefixes(judged):
    """A thread comes to its own code once, so what lies above is the same in all its samples; the truth does not know it, but most samples do."""
    prefixes = collections.defaultdict(collections.Counter)
    for stack, count, judgement in judged:
        if judgement.kind == "exact":
            name, prefix = _prefix(stack)
            prefixes[name][prefix] += count
    usuals = {name: prefixes[name].most_common(1)[0][0] for name in prefixes}
    result = []
    for stack, count, judgement in judged:
        if judgement.kind == "elsewhere":
            # All that a thread does below its way to its own code is its own code. A short way is that of many threads.
            for name, usual in usuals.items():
                if len(usual) >= LONG_WAY and stack[:len(usual)] == usual and any(not f.endswith("_[k]") for f in stack[len(usual):]):
                    judgement = Judgement("missing", f"the way to {name}, and then {stack[len(usual)]}")
        elif judgement.kind == "exact":
            name, prefix = _prefix(stack)
            usual = usuals[name]
            if prefix != usual:
                why = f"what lies above {name} is else {';'.join(usual)}"
                judgement = Judgement("missing" if _is_subsequence(prefix, usual) else "invented", why)
        result.append((stack, count, judgement))
    return result


def allowed_faults(judged, share, luck=1e-7):
    """How many faults there may be among so many samples. A program that is right in `share` of all cases exceeds this with probability `luck`."""
    mean, chance, total, faults = judged * (1 - share), 0.0, 0.0, 0
    while True:
        chance = math.exp(faults * math.log(mean) - mean - math.lgamma(faults + 1)) if mean else float(faults == 0)
        total += chance
        if total >= 1 - luck:
            return faults
        faults += 1
