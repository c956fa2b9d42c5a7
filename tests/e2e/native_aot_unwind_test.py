#!/usr/bin/env python3
"""Is a NativeAOT method left rightly from each of its instructions?

The truth is what the instructions do to rsp and rbp, followed from each method's first one along all branches, by the disassembly of
another program (objdump). tools/unwind_check, found through UNWIND_CHECK or CLRSAMPLER_BUILD_DIR, says what the profiler would do there.
"""
import bisect
import collections
import re
import subprocess
import unittest

import check_program
import deployments
import harness
import runtimes
import stacks_live_test
import unwind_data_test

PROGRAM = unwind_data_test.PROGRAM
PROGRAMS = (("shapes", stacks_live_test.PROJECT, "8.0.30"), ("workload", deployments.WORKLOAD, "8.0.30"), ("workload", deployments.WORKLOAD, "9.0.19"))
PREFIXES = re.compile(r"^(?:data16|cs|bnd|notrack|repz|lock|rex(?:\.[WRXB]+)?) ")
# The places where rsp and rbp point, counted down from where the caller's rsp will be; None: not known.
# saved: where the caller's rbp lies; callers: whether rbp is the caller's.
State = collections.namedtuple("State", "sp fp saved callers probed", defaults=(None,))
ENTRY = State(8, None, None, True)


def command(*words, **options):
    return subprocess.run(words, check=True, text=True, capture_output=True, timeout=600, **options).stdout


def disassemble(path):
    """{address: instruction} of the methods' section, in AT&T syntax without prefixes."""
    code = {}
    for line in command("objdump", "-d", "-w", "-j", "__managedcode", "--no-show-raw-insn", path).splitlines():
        found = re.match(r"\s+([0-9a-f]+):\s+(.*)", line)
        if found:
            text = re.sub(r"\s+", " ", found[2].split("#")[0].split("<")[0].strip())
            while PREFIXES.match(text):
                text = PREFIXES.sub("", text)
            code[int(found[1], 16)] = text
    return code


def after(state, text):
    """The state behind an instruction."""
    operation, _, operands = text.partition(" ")
    if operation == "push":
        sp = None if state.sp is None else state.sp + 8
        return state._replace(sp=sp, saved=sp if operands == "%rbp" and state.callers else state.saved)
    if operation == "pop":
        sp = None if state.sp is None else state.sp - 8
        if operands != "%rbp":
            return state._replace(sp=sp)
        return state._replace(sp=sp, fp=None, callers=state.sp is not None and state.sp == state.saved)
    found = re.fullmatch(r"\$(-?0x[0-9a-f]+),%rsp", operands)
    if found and operation in ("sub", "add"):
        down = int(found[1], 16) if operation == "sub" else -int(found[1], 16)
        return state._replace(sp=None if state.sp is None else state.sp + down)
    found = re.fullmatch(r"(-?0x[0-9a-f]+)?\(%r([sb]p)\),%r(sp|bp|11)", operands)
    if found and operation == "lea":
        base = state.sp if found[2] == "sp" else state.fp
        value = None if base is None else base - int(found[1] or "0", 16)
        return {"sp": state._replace(sp=value), "bp": state._replace(fp=value, callers=False), "11": state._replace(probed=value)}[found[3]]
    if operation == "mov" and operands in ("%rsp,%rbp", "%rbp,%rsp", "%r11,%rsp"):
        return {"%rsp,%rbp": state._replace(fp=state.sp, callers=False), "%rbp,%rsp": state._replace(sp=state.fp),
                "%r11,%rsp": state._replace(sp=state.probed)}[operands]
    if operation.startswith(("cmp", "test", "ucomi", "bt", "call", "mul", "imul %", "div", "idiv")):
        return state
    if operands.endswith(",%rsp"):
        return state._replace(sp=None)
    if re.search(r"(^|,)%(rbp|ebp|bp|bpl)$", operands):
        return state._replace(fp=None, callers=False)
    return state


def follow(code, following, inside, start, entry, states):
    """Notes the state in front of each instruction that is reached from `start`."""
    work = [(start, entry)]
    while work:
        at, state = work.pop()
        while at in inside and states.get(at) != state:
            if at in states:  # what is known on both ways
                known = states[at]
                state = State(*(a if a == b else (False if isinstance(a, bool) else None) for a, b in zip(known, state)))
                if state == known:
                    break
            states[at] = state
            operation, _, operands = code[at].partition(" ")
            if operation.startswith("j") and re.fullmatch(r"[0-9a-f]+", operands):
                work.append((int(operands, 16), state))
            if operation in ("jmp", "ret", "int3", "ud2"):
                break
            state = after(state, code[at])
            at = following.get(at)


def states_of(code):
    """For each function of the unwind tables the states in front of its instructions."""
    path, code, order = code
    following = dict(zip(order, order[1:]))
    functions = []
    for line in command("readelf", "--debug-dump=frames,no-follow-links", path).splitlines():
        found = re.search(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
        if found and int(found[1], 16) in code:
            functions.append((int(found[1], 16), int(found[2], 16)))
    for start, end in functions:
        body = order[bisect.bisect_left(order, start):bisect.bisect_left(order, end)]
        inside, states = frozenset(body), {}
        follow(code, following, inside, start, ENTRY, states)
        # Places that a switch leads to, and where methods go on that caught something: as most of the body.
        usual = collections.Counter(states.values()).most_common(1)[0][0]
        for at in body:
            if at not in states and not code[at].startswith(("nop", "int3", "xchg")):
                follow(code, following, inside, at, usual, states)
        yield states


def difference(state, frame, fp):
    """Why a leaf in this state is not left by {frame: `sp+N` or `fp+N`, fp: `same` or `cfa-N`}; empty: it is, None: its state is not known."""
    base = state.sp if frame.startswith("sp") else state.fp
    if base is None and frame.startswith("sp"):
        return None
    if base != int(frame[3:]):
        return "frame"
    if fp == "same":
        return "" if state.callers else "rbp"
    slot = int(fp[4:])
    # Below rsp it has been taken back already, which the step out of the frame knows.
    return "" if slot == state.saved or (state.callers and state.sp < slot) else "rbp"


class NativeAotUnwindTest(unittest.TestCase):
    def test_each_instruction(self):
        for name, project, version in PROGRAMS:
            with self.subTest(f"{name} {version}"):
                try:
                    (path,) = deployments.publish("native-aot", version, project)
                except runtimes.Missing as reason:
                    if harness.REQUIRE_LIVE:
                        raise
                    print(f"SKIPPED {name} {version}: {reason}", flush=True)
                    continue
                self.check(name, version, path)

    def check(self, name, version, path):
        code = disassemble(path)
        answers = {}
        for line in command(PROGRAM, "leaves", path, input="".join(f"{at:x}\n" for at in code)).splitlines():
            at, *answer = line.split()
            answers[int(at, 16)] = answer
        counts, wrong = collections.Counter(), []
        for states in states_of((path, code, sorted(code))):
            for at, state in states.items():
                counts["instructions"] += 1
                where, frame, *fp = answers[at]
                counts[where] += 1
                if code[at] == "ret" and state.sp not in (8, None):
                    self.fail(f"the truth is none: a return at {at:x} with {state}")
                why = difference(state, frame, fp[0]) if fp else "nothing is known"
                counts["unknown"] += why is None
                if why:
                    wrong.append(f"{at:x} {code[at]}: {why}; {where} {frame} {fp}, {state}")
        print(f"  {name} {version}: {counts['instructions']} instructions, {counts['leaf']} in epilogues, {len(wrong)} differences, "
              f"{counts['unknown']} not followed", flush=True)
        self.assertEqual(wrong, [], f"{len(wrong)} of {counts['instructions']}, such as {wrong[:5]}")
        self.assertGreater(counts["leaf"], counts["instructions"] // 20, "that these are epilogues the tables leave out")
        self.assertLess(counts["unknown"], counts["instructions"] // 200)


class TruthTest(unittest.TestCase):
    """Wrong answers that the check above must know."""

    def test_differences(self):
        pushed = after(ENTRY, "push %rbp")
        framed = after(after(pushed, "sub $0x20,%rsp"), "lea 0x20(%rsp),%rbp")
        self.assertEqual(framed, State(48, 16, 16, False))
        left = after(after(framed, "add $0x20,%rsp"), "pop %rbp")
        self.assertEqual(left[:4], State(8, None, 16, True)[:4])
        for state, frame, fp, why in ((framed, "sp+48", "cfa-16", ""), (framed, "fp+16", "cfa-16", ""), (framed, "sp+40", "cfa-16", "frame"),
                                      (framed, "sp+48", "same", "rbp"), (framed, "sp+48", "cfa-24", "rbp"), (left, "sp+8", "same", ""),
                                      (left, "sp+8", "cfa-16", ""), (left, "sp+48", "cfa-16", "frame"), (left, "fp+16", "cfa-16", "frame"),
                                      (after(framed, "mov %r9,%rsp"), "sp+48", "cfa-16", None)):
            self.assertEqual(difference(state, frame, fp), why, (state, frame, fp))

    def test_ways_that_meet(self):
        code = {0: "push %rbx", 1: "je 3", 2: "pop %rbx", 3: "ret"}
        states = {}
        follow(code, {0: 1, 1: 2, 2: 3}, frozenset(code), 0, ENTRY, states)
        self.assertEqual([states[at].sp for at in range(4)], [8, 16, 16, None])


if __name__ == "__main__":
    check_program.main(PROGRAM)
