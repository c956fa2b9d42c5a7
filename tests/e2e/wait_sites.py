"""Compares what tests/apps/waits says of its waits with the stacks of a recording."""
import collections
import math

# The share of the time at a site that measuring takes, and spinning of less than a millisecond before a wait.
OWN_ERROR = 0.03
# Waits that are passed over make sums at a site estimates. So many standard errors are exceeded once in 10^9 comparisons.
SIGMAS = 6


def kind_of(stack):
    """(kind, index of its mark) of a stack."""
    for index, frame in enumerate(stack):
        if frame.startswith("[woken"):
            return stack[index - 1][1:-1], index - 1
    return (stack[-1][1:-1] if stack[-1].startswith("[") else "running"), len(stack) - 1


def check_sites(test, truth, stacks, waits, own_error=OWN_ERROR, least=0.99):
    """`least`: the share of the time at a site whose waker is the one that ends its waits."""
    passed = waits["passed_over"] / max(1, waits["passed_over"] + waits["kept"])
    for site in truth:
        kinds, wakers = collections.Counter(), collections.Counter()
        for stack, microseconds in stacks:
            kind, mark = kind_of(stack)
            if site["method"] + "_[j]" not in stack[:mark]:
                continue
            kinds[kind] += microseconds
            if kind == site["kind"]:
                wakers[stack[mark + 1] if mark + 1 < len(stack) else ""] += microseconds
        told, real = sum(kinds.values()), site["ns"] / 1000
        error = own_error + SIGMAS * math.sqrt(passed / (1 - passed) / max(1, site["waits"]))
        print(f"  {site['method']}: {told / real:.3f} of its time ({error:.3f} allowed), {dict(kinds)}", flush=True)
        # A thread that spins for its turn on a busy machine waits for a CPU, in parts that may be short.
        spins = site["kind"] in ("task wait", "semaphore")
        test.assertLess(told / real, 1 + error, site)
        test.assertGreater(told / real, (0.8 if spins else 1) - error, site)
        wrong = told - kinds[site["kind"]] - kinds["runnable"]
        test.assertLessEqual(wrong, 0.02 * told, (site, kinds))
        if site["waker"] and wakers:
            right = wakers[f"[woken by thread {site['waker']}]"]
            test.assertGreaterEqual(right, 0.9 * sum(wakers.values()), (site, wakers))
            if site["kind"] == "socket":  # on a busy CPU the kernel's own thread delivers what was sent
                right += sum(count for waker, count in wakers.items() if waker.startswith("[woken by ksoftirqd/"))
            test.assertGreaterEqual(right, least * sum(wakers.values()), (site, wakers))
        if site["kind"] == "sleep":
            test.assertGreaterEqual(wakers["[woken by an interrupt]"], 0.9 * sum(wakers.values()), wakers)
