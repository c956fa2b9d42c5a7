#!/usr/bin/env python3
"""Hooks beside the sampler at 999 Hz on the whole host, for CLRSAMPLER_SOAK_SECONDS (600). Meanwhile .NET processes start, are replaced by exec,
fork and die in the middle of what they do."""
import contextlib
import itertools
import os
import random
import shlex
import threading
import time

import harness
import runtimes

SECONDS = int(os.environ.get("CLRSAMPLER_SOAK_SECONDS", "600"))
VERSIONS = runtimes.selected()
MODES = ("gc", "expr", "alc", "json")


class Comings:
    """Processes that come and go in a thread of their own. Some end, some are killed at any moment, some are a shell that becomes .NET."""

    def __init__(self):
        self.over = threading.Event()
        self.killed = self.ended = 0
        self.failure = None
        self.thread = threading.Thread(target=self.run)

    def run(self):
        chance = random.Random(6)
        try:
            for version, mode in itertools.cycle(itertools.product(VERSIONS, MODES)):
                if self.over.is_set():
                    return
                command, env = runtimes.command(version, mode, "--seconds", "2")
                if chance.random() < 0.5:
                    command = ["sh", "-c", "sh -c true; exec " + shlex.join(command)]
                with harness.Target(command, env=env, ready=False) as target:
                    if chance.random() < 0.5:
                        time.sleep(chance.random() * 2)
                        self.killed += 1
                    else:
                        target.process.wait(60)
                        self.ended += 1
        except Exception as failure:
            self.failure = failure

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class HooksSoakTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def test_nothing_is_lost_unseen(self):
        with contextlib.ExitStack() as stack:
            for version in VERSIONS:
                self.need_runtime(version)
                stack.enter_context(harness.workload(version, "gc", "--seconds", 7200))
                stack.enter_context(harness.workload(version, "expr", "--seconds", 7200))
            comings = stack.enter_context(Comings())
            result = harness.record("--duration", f"{SECONDS}s", "--frequency", "999", "--mark-suspension", timeout=SECONDS + 120)
        self.assertIsNone(comings.failure)
        self.check_result(result)
        samples, pauses, jit = (result.stats[key] for key in ("samples", "pauses", "jit"))
        print(f"    {comings.ended} ended, {comings.killed} were killed; {samples}; pauses {pauses}; jit {jit}", flush=True)
        self.assertGreater(comings.killed + comings.ended, SECONDS / 10)
        lost = sum(samples["lost"].values())
        # Scheduling accounts come in ticks, and so do a hypervisor's thefts. A loss that nobody counted would be more.
        self.assertLess(abs(samples["taken"] + lost - samples["expected"]), 0.02 * samples["expected"], samples)
        for frames, _ in result.profile.stacks:
            self.assertFalse(any("[uprobes]" in frame for frame in frames), frames)
        self.assertGreater(pauses["pauses"], 100 * SECONDS / 10)
        self.assertGreater(jit["compilations"], 100 * SECONDS / 10)
        self.assertEqual(pauses["events_lost"], 0, pauses)
        self.assertEqual(pauses["unexpected"], 0, "a suspend or resume that fits nothing")
        self.assertEqual(pauses["without_gc_end"], 0, pauses)
        # Only what was under way as watching began, as a process was killed, or as watching ended.
        begun_or_ended = len(VERSIONS) * 2 * 2 + comings.killed + comings.ended
        self.assertLessEqual(pauses["cut"], begun_or_ended, pauses)
        self.assertLessEqual(jit["cut"] + jit["unfinished"], jit["compilations"] / 100 + begun_or_ended, jit)


if __name__ == "__main__":
    harness.main()
