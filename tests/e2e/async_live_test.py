#!/usr/bin/env python3
"""Async methods that the runtime compiles itself (.NET 11) read as people wrote them: one frame each, whichever of their bodies ran, with the
callers that they truly have. Prepared and unprepared alike."""
import collections
import os

import folded
import harness
import runtimes
import stack_truth

VERSION = runtimes.PACKED_VERSIONS[-1]
# The chain of callers of each method that burns CPU time (tests/apps/runtime_async), from the last frame of the runtime's own on.
START = ["Shop.Program.Main", "Shop.Program.CheckoutAsync", "Shop.Program.PayAsync", "Shop.Program.ReserveAsync", "Shop.Program.BurnFirst"]
NESTED = ["Shop.Program.Main", *["Shop.Program.NestAsync"] * 3, "Shop.Program.BurnNested"]
DISPATCHER = ".DispatchContinuations"


class AsyncTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def record(self, env, *arguments):
        self.need_runtime(VERSION)
        base = runtimes.root(VERSION)
        command = [os.path.join(base, "dotnet"), runtimes.runtime_async_app(VERSION)]
        with harness.Target(command, dict(env, DOTNET_ROOT=base)) as target:
            target.use_cpu(0.5)
            result, _ = harness.record_window(target, 3, 499, "--no-hooks", *arguments)
        self.assertEqual(result.status, 0, result)
        return result.profile

    def chains(self, profile):
        """By burner: its callers, from the program's or the runtime's last frame that is no method of the program on."""
        chains = collections.defaultdict(collections.Counter)
        for frames, count in profile.stacks:
            names = [folded.bare(frame) for frame in frames]
            burner = next((i for i, name in enumerate(names) if name.startswith("Shop.Program.Burn") and name != "Shop.Program.Burn"), None)
            if burner is None:
                continue
            first = burner
            while first > 0 and names[first - 1].startswith("Shop."):
                first -= 1
            dispatched = names[first - 1].endswith(DISPATCHER)
            chains[names[burner]][(dispatched, *names[first:burner + 1])] += count
        return chains

    def check(self, profile):
        # The stub has a frame only where it runs itself, which is a handful of instructions.
        in_stub = 0
        for frames, count in profile.stacks:
            self.assertFalse(any("AsyncResume" in frame and below.endswith("_[j]") for frame, below in zip(frames, frames[1:], strict=False)), frames)
            in_stub += count * any("AsyncResume" in frame for frame in frames)
        self.assertLess(in_stub, 0.01 * profile.total)
        chains = self.chains(profile)
        print("   ", {burner: sum(counts.values()) for burner, counts in chains.items()}, flush=True)
        expected = {
            "Shop.Program.BurnFirst": (False, *START),
            "Shop.Program.BurnNested": (False, *NESTED),
            "Shop.Program.BurnResumed": (True, "Shop.Program.ReserveAsync", "Shop.Program.BurnResumed"),
            "Shop.Program.BurnPlain": (True, "Shop.Program.ReserveAsync", "Shop.Cart.PriceAsync", "Shop.Program.BurnPlain"),
        }
        for burner, chain in expected.items():
            counts = chains[burner]
            total = sum(counts.values())
            self.assertGreater(total, 100, burner)
            self.assertLessEqual(total - counts[chain], stack_truth.allowed_faults(total, 0.995), f"{burner}: {counts.most_common(4)}")

    def test_unprepared(self):
        self.check(self.record({}))

    def test_prepared(self):
        # The map names what is in its finished blocks, memory the rest: both must say the same.
        self.check(self.record({"DOTNET_PerfMapEnabled": "1"}))

    def test_all_bodies_are_there_in_the_full_style(self):
        profile = self.record({}, "--names", "full")
        self.assertGreater(profile.with_frame(lambda frame: "IL_STUB_AsyncResume" in frame), 0)
        doubles = 0
        for frames, count in profile.stacks:
            methods = [folded.bare(frame).split("(")[0] for frame in frames]
            doubles += count * any(a == b and a.endswith("Program.CheckoutAsync") for a, b in zip(methods, methods[1:], strict=False))
        self.assertGreater(doubles, 0, "the thunk above its method")


if __name__ == "__main__":
    harness.main()
