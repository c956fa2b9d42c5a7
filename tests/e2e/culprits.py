"""Threads that delay collections: tests/apps/workload's mode `delay-suppress`, whose other thread spins in native code that it calls without a
transition."""
import collections
import math

SPIN_NS = 20e6  # PauseMode.cs
GUILTY = "PauseMode.CallWithoutTransition"


def blame_of(pauses):
    """{(method, thread): nanoseconds of delay}"""
    blame = collections.Counter()
    for pause in pauses:
        for culprit in pause["culprits"]:
            blame[culprit["method"], culprit["tid"]] += culprit["delay_ns"]
    return blame


def check_native_code_without_transition(test, truth, pauses, on_its_way=()):
    """`on_its_way`: further methods of the same thread, between the end of the spin and the moment in which it stands still. `truth` has what
    the target's threads waited for a CPU."""
    blame, waited = blame_of(pauses), truth["waited_ns"]
    mean, total = sum(p["suspend_ns"] for p in pauses) / len(pauses), sum(blame.values())
    # The spin is at any point when the collection asks, so half of it is left; time is all that it waits for. The rest is spread evenly, so the
    # mean is within five standard errors but for six cases in ten million.
    chance = 5 * SPIN_NS / math.sqrt(12 * len(pauses))
    test.assertGreaterEqual(mean, 0.5 * SPIN_NS - chance)
    test.assert_within(mean, 0.5 * SPIN_NS + chance + waited / len(pauses), "mean suspension")
    # No sample shows a thread that has no CPU.
    test.assertGreater(total + waited, 0.95 * sum(p["suspend_ns"] for p in pauses), "the delay is somebody's")
    guilty = sum(delay for (method, tid), delay in blame.items()
                 if tid == truth["thread"] and (method.split("(")[0].endswith(GUILTY) or method.startswith(tuple(on_its_way))))
    test.assertGreaterEqual(guilty, 0.95 * total, blame)
