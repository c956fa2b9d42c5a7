#!/usr/bin/env python3
"""Programs that collect and compile without end, of a user who may do nothing else, beside `clrsampler serve`: the rate of the host stays what it
is, and no sample is lost. Probes stay in (`--hook-budget 0`), so that all of it reaches the agent's own limits.

CLRSAMPLER_FLOOD_SECONDS: how long (60)."""
import contextlib
import os
import time

import harness
import runtimes
from service import Service

SECONDS = float(os.environ.get("CLRSAMPLER_FLOOD_SECONDS", "60"))
FREQUENCY = 99
# Each compiles or collects as fast as its share of a CPU lets it.
FLOODS = ("flood-jit", "flood-jit", "flood-jit", "flood-jit", "expr", "expr", "flood-gc", "flood-gc")


def flood(version, mode):
    command, additions = runtimes.command(version, mode, "--seconds", str(SECONDS + 120))
    return harness.Target([*harness.AS_NOBODY, *command], env={"HOME": "/tmp", **additions})


class HookFloodTest(harness.LiveTest):
    NEEDS = ("dotnet", "setpriv")

    def test_neither_the_rate_nor_a_sample_is_lost(self):
        version = runtimes.newest()[-1]
        self.need_runtime(version)
        with Service("--frequency", FREQUENCY, "--hook-budget", 0) as service, contextlib.ExitStack() as stack:
            service.wait_for_windows(1)
            floods = []
            for mode in FLOODS:  # they come while it samples: what they compile at first counts, too
                floods.append((mode, time.monotonic(), stack.enter_context(flood(version, mode))))
            before, began, steal = service.metrics(), time.monotonic(), harness.steal_seconds()
            rates = set()
            while time.monotonic() < began + SECONDS:
                time.sleep(1)
                rates.add(service.sum("clrsampler_sampling_frequency_hertz"))
            service.wait_for_windows(2)
            after, took, said, steal = service.metrics(), time.monotonic() - began, service.said(), harness.steal_seconds() - steal
            did = {mode: 0 for mode in FLOODS}
            for mode, since, target in floods:
                if mode.startswith("flood-"):
                    did[mode] += target.end()["times"] / (time.monotonic() - since)

        def grown(name, **labels):
            return service.sum(name, after, **labels) - service.sum(name, before, **labels)

        taken, expected = grown("clrsampler_samples_taken_total"), grown("clrsampler_samples_expected_total")
        cpu = grown("clrsampler_agent_cpu_seconds_total") / took
        lost = grown("clrsampler_runtime_events_lost_total")
        print(f"    {did['flood-jit']:.0f} compilations and {did['flood-gc']:.0f} collections a second, and those of `expr`; {lost / took:.0f} events a second "
              f"were left out; {taken:.0f} samples of {expected:.0f}, rates {sorted(rates)}; the agent took {100 * cpu:.1f} % of a CPU", flush=True)
        self.assertEqual(rates, {FREQUENCY}, said)
        self.assertEqual(grown("clrsampler_sampling_frequency_changes_total"), 0, said)
        self.assertEqual(grown("clrsampler_samples_lost_total"), 0)
        self.assertGreater(lost, 1000 * SECONDS, "the flood was one")
        # 5 sigma of independent samples, and what a hypervisor swallows.
        self.assertGreaterEqual(taken, 0.99 * expected - 5 * expected ** 0.5 - steal * FREQUENCY)


if __name__ == "__main__":
    harness.main()
