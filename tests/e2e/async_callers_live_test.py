#!/usr/bin/env python3
"""Async methods that were resumed have the callers that await them (--async-stacks), and never one that does not.

The judge is a program in which each method that burns CPU time belongs to one place of one chain. While it runs, collections move its objects.
"""
import collections
import os
import re
import signal
import subprocess
import tempfile

import folded
import harness
import runtimes
import stack_truth

AWAITS = " [awaits]"
BURNER = re.compile(r"Shop\.(\w+)\.Burn(\d)$")
COMPILED = re.compile(r"Shop\.(\w+)\.Burn(\d) QuickJitted")
SEVERAL = "[awaited by several]"
# Its program is compiled twice: to state machines, and with async methods of the runtime's.
RUNTIME_ASYNC = "11.0.0"
STOPPED = "[the world is stopped]"
# The share of the chains that must be whole.
RIGHT = 0.99
# Some 12 waits have not ended with a recording, and have no known awaiters. They are half a percent of this time at most.
WAITS = "12s" if runtimes.MATRIX else "6s"
# Kind of event, mode of the program, time. Wall is CPU time and waits, which have their own.
EVENTS = (("alloc", "burn", "4s"), ("exception", "throw", "4s"), ("off-cpu", "sleep", WAITS)) + ((("wall", "sleep", WAITS),) if runtimes.MATRIX else ())


def without_arguments(name):
    return re.sub(r"<.*", "", name)


def expected(chain, place):
    """The methods that await the one that burns there, outermost first. A method that awaits itself is there seven times."""
    if chain == "Nested":
        return ["Shop.Nested.M"] * 7
    if chain == "Shared":
        return ["Shop.Shared.Middle"]
    return [f"Shop.{chain}.M{i}" for i in range(1, place)]


def judge(profile, burner_of, weigh):
    """(weight of stacks with a burner, of these right, with a caller that does not await, what was seen of the others). `burner_of`: its
    (index, chain, place) among the names of a stack, or None. `weigh`: of a stack, by its count."""
    total = right = invented = 0
    others = collections.Counter()
    for frames, count in profile.stacks:
        names = [folded.bare(frame) for frame in frames]
        burner, count = burner_of(names), weigh(count)
        if burner is None:
            continue
        if STOPPED in names[:2]:
            # Objects may be moving.
            invented += count * any(name.endswith(AWAITS) for name in names)
            continue
        index, chain, place = burner
        wanted = expected(chain, place)
        seen = [without_arguments(name[:-len(AWAITS)]) for name in names[:index] if name.endswith(AWAITS)]
        # The driver comes to await the chain a moment after that has gone on.
        if seen[:1] == ["Shop.Program.Drive"] and chain != "Shared":
            seen = seen[1:]
        total += count
        if seen == wanted and (chain != "Shared" or SEVERAL in names[:3]):
            right += count
            continue
        # Methods may be missing at the outer end: that invents no caller that does not await.
        if seen != wanted[len(wanted) - len(seen):]:
            invented += count
        others[";".join(names)] += count
    return total, right, invented, others


def running_burner(names):
    for index, name in enumerate(names):
        if match := BURNER.match(name):
            return index, match[1], int(match[2])
    return None


def compiled_burner(names):
    """At its first call, which its caller waits for. The last frame says its name."""
    match = COMPILED.search(names[-1])
    return match and (len(names) - 1, match[1], int(match[2]))


def check(test, what, result, least, burner_of=running_burner, weigh=lambda count: count, share=RIGHT, stops_are_marked=True):
    """No awaiter is invented, and of more than `least` chains that share is whole."""
    test.assertEqual(result.status, 0, result)
    total, right, invented, others = judge(result.profile, burner_of, weigh)
    print(f"    {what}: {total} in all, {right} right, {invented} invented; {result.stats.get('async')}", flush=True)
    test.assertGreater(total, least)
    test.assertEqual(invented, 0, others.most_common(3))
    counts = result.stats["async"]
    # A wait that began while the world stood still keeps its stack. Where no mark says which, the count tells how many these are.
    stopped = 0 if stops_are_marked else 1.5 * counts["stopped"] / max(1, counts["resumed"])
    test.assertLessEqual(total - right, stack_truth.allowed_faults(total, share) + stopped * total, others.most_common(3))
    test.assertEqual(counts["resumed"], sum(counts[part] for part in ("found", "not_awaited", "unknown", "stopped", "between")))


def lines_of_awaits():
    """Method -> its line in the program, of those that stand in one line with their only await."""
    lines, owner = {}, None
    with open(os.path.join(runtimes.SOURCE, "tests", "apps", "async_chains", "Program.cs"), encoding="utf-8") as source:
        for number, text in enumerate(source, 1):
            if match := re.match(r"static class (\w+)", text):
                owner = match[1]
            elif (match := re.search(r" async \S+ (\w+)(?:<\w+>)?\(", text)) and text.count("await ") == 1:
                lines[f"Shop.{owner}.{match[1]}"] = number
    return lines


class AsyncCallersTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def programs(self, mode):
        """(what it is, the program)"""
        for version in runtimes.selected() if runtimes.MATRIX else (runtimes.PACKED_VERSIONS[0],):
            self.need_runtime(version)
            yield version, harness.Target(*runtimes.command(version, "3600", mode, program="async_chains"))
        yield f"{RUNTIME_ASYNC} runtime async", self.runtime_async_program(mode)

    def runtime_async_program(self, mode, **more):
        self.need_runtime(RUNTIME_ASYNC)
        base = runtimes.root(RUNTIME_ASYNC)
        command = [os.path.join(base, "dotnet"), runtimes.runtime_async_app(RUNTIME_ASYNC, "async_chains"), "3600", mode]
        return harness.Target(command, dict(DOTNET_ROOT=base, **more))

    def test_cpu_time(self):
        for version, program in self.programs("burn"):
            with self.subTest(version), program as target:
                target.signal(signal.SIGHUP)
                target.use_cpu(2)
                result, _ = harness.record_window(target, 4, 499, "--async-stacks", "--mark-suspension")
                check(self, version, result, 1000)

    def test_awaiting_methods_of_the_runtime_have_their_line(self):
        wanted, seen = lines_of_awaits(), collections.Counter()
        with self.runtime_async_program("burn") as target:
            target.signal(signal.SIGHUP)
            target.use_cpu(1)
            result, _ = harness.record_window(target, 2, 499, "--async-stacks", "--lines")
        self.assertEqual(result.status, 0, result)
        for frames, count in result.profile.stacks:
            for frame in frames:
                # Machines that a compiler makes have none.
                if (match := re.match(r"([\w.]+) \[awaits\]:(\d+)_", frame)) and match[1] in wanted:
                    self.assertEqual(int(match[2]), wanted[match[1]], frame)
                    seen[match[1]] += count
        self.assertGreater(sum(seen.values()), 1000)
        self.assertGreater(len(seen), 20, seen)

    def test_events(self):
        for event, mode, seconds in EVENTS:
            for version, program in self.programs(mode):
                with self.subTest(version=version, event=event), program as target:
                    target.signal(signal.SIGHUP)
                    target.use_cpu(0.5)
                    result = harness.record("--pid", str(target.host_pid), "--duration", seconds, "--event", event, "--hook-budget", "0",
                                            "--async-stacks")
                    check(self, f"{version} {event}", result, 300)

    def test_compilations(self):
        """Each burner is compiled at its first call, for the method that was resumed."""
        for version, program in self.programs("burn"):
            with self.subTest(version), program as target:
                agent = harness.Agent(("--pid", str(target.host_pid), "--view", "jit", "--hook-budget", "0", "--async-stacks"))
                agent.wait_until_sampling()
                target.signal(signal.SIGHUP)
                target.use_cpu(2)
                agent.interrupt()
                # Each burner is compiled once: how long that took says nothing about its callers.
                check(self, f"{version} jit", agent.finish(60), 15, compiled_burner, weigh=lambda count: 1)

    def test_what_can_not_be_combined_is_refused(self):
        for arguments, hint in ((("--unwind", "chain"), "leave --unwind out"), (("--no-hooks",), "leave --no-hooks out"),
                                (("--event", "alloc", "--source", "eventpipe"), "--async-stacks")):
            with self.subTest(arguments):
                result = harness.record("--pid", str(os.getpid()), "--duration", "1s", "--async-stacks", *arguments)
                self.assertNotEqual(result.status, 0)
                self.assertIn("--async-stacks", result.err)
                self.assertIn(hint, result.err)

    def test_a_saved_run_says_the_same(self):
        with self.runtime_async_program("burn") as target, tempfile.TemporaryDirectory() as folder:
            target.signal(signal.SIGHUP)
            stream = os.path.join(folder, "stream")
            recorded = harness.record("--pid", str(target.host_pid), "--duration", "2s", "--async-stacks", "--save-stream", stream)
            self.assertEqual(recorded.status, 0, recorded)
            self.assertGreater(recorded.stats["async"]["found"], 0)
            played = subprocess.run([harness.AGENT, "replay", stream], capture_output=True, timeout=120)
            self.assertEqual(played.returncode, 0, played.stderr)
            self.assertEqual(played.stdout, recorded.out)


if __name__ == "__main__":
    harness.main()
