#!/usr/bin/env python3
"""Stacks of everyday work reach the thread's start, whatever is below: managed code, the runtime, libc, OpenSSL, ICU, compressors.

99.8 % of the stacks of user code begin where libc starts threads and programs, or in Main. The replay's own account of unwind data in the
stats must fit: fewer than one frame in 100,000 contradicts its frame pointer.

  roots_live_test.py                            all modes on one runtime
  CLRSAMPLER_ROOTS=full roots_live_test.py      on all runtimes
  CLRSAMPLER_ROOTS_CASES=REGEX                  only cases whose name (`8.0.30 json`) matches
"""
import collections
import os
import re
import unittest

import folded
import harness
import runtimes
import stack_truth
from watcher import Watcher

VERSIONS = (*runtimes.PACKED_VERSIONS, runtimes.INSTALLED)
SHARE = 0.998
MOST_CONTRADICTIONS = 1e-5
FREQUENCY = 997
CPU_SECONDS = 2.0

# Name -> (mode, arguments, environment, pattern of a frame that the work can't do without).
MODES = {
    "json": ("json", (), {}, r"System\.Text\.Json\."),
    "regex": ("regex", (), {}, r"System\.Text\.RegularExpressions\."),
    "linq": ("linq", (), {}, r"System\.Linq\."),
    "async": ("async", (), {}, r"System\.Threading\.ThreadPoolWorkQueue\."),
    "compression": ("compression", (), {}, r"System\.IO\.Compression\."),
    "crypto": ("crypto", (), {}, r"System\.Security\.Cryptography\."),
    "icu": ("icu", (), {}, r"System\.Globalization\.CompareInfo\."),
    "memcpy": ("memcpy", (), {}, r"Workload\.Libraries\.Copies"),
    "gc workstation": ("gc", (), {}, r"Workload\.Loops\.Garbage"),
    "gc server": ("gc", ("--threads", "2"), {"DOTNET_gcServer": "1"}, r"Workload\.Loops\.Garbage"),
    "startup": ("startup", (), {}, r"Workload\.StartupMode\."),
}
KEYS = ("frames", "chain", "unwind_info", "table", "stub", "fallback", "checked", "contradictions", "missing_words")
MAIN = re.compile(r"\w+\.Program\.Main")
# Before there is a libc, the dynamic linker is the first.
# In the middle of an exec the old program's code is gone, and its registers say nothing of the new one.
EXEC = "__x64_sys_execve_[k]"
LINKER = re.compile(r"_dl_start.*|ld-linux-x86-64\.so\.2!0x[0-9a-f]+")


class Roots:
    """The stacks that reach their thread's start. Pure."""

    def __init__(self, profile):
        self.user = self.reached = 0
        self.others = collections.Counter()
        for stack, count in profile.stacks:
            frames = [folded.bare(frame) for frame in stack[1:] if not frame.endswith("_[k]")]
            if not frames or EXEC in stack:
                continue
            self.user += count
            if stack_truth.reaches_start(frames) or LINKER.fullmatch(frames[0]) or any(MAIN.fullmatch(frame) for frame in frames):
                self.reached += count
            else:
                self.others[";".join(stack[1:])] += count

    @property
    def share(self):
        return self.reached / self.user if self.user else 0.0

    def __str__(self):
        return f"{100 * self.share:.3f} % of {self.user} reach the start" + "".join(f"\n  {count} {text[:1500]}" for text, count in self.others.most_common(6))


def cases():
    versions = VERSIONS if os.environ.get("CLRSAMPLER_ROOTS") == "full" else ("10.0.14",)
    pattern = re.compile(os.environ.get("CLRSAMPLER_ROOTS_CASES", ""))
    return [(version, name) for version in versions for name in MODES if pattern.search(f"{version} {name}")]


class RootsTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def record(self, version, name):
        mode, arguments, env, _ = MODES[name]
        if name == "startup":
            command, additions = runtimes.command(version, mode, "--seconds", "0.4")
            one = " ".join(command)
            return harness.record("--frequency", str(FREQUENCY), "--", "sh", "-c", " && ".join([one] * 4), env={**additions, **env})
        with harness.workload(version, mode, "--seconds", 300, *arguments, env=env) as target:
            # Without probes: in the few instructions of a return probe's trampoline the kernel has forgotten the caller, which reads
            # [caller may be missing]; with 1,300 collections a second that is 1 stack of 400.
            result, _ = harness.record_window(target, CPU_SECONDS, FREQUENCY, "--no-hooks")
        return result

    def check_unwind(self, stats):
        self.assertIn("unwind", stats, "the stats do not say how stacks were unwound")
        unwind = stats["unwind"]
        for key in KEYS:
            self.assertIsInstance(unwind.get(key), int, f"{key}: {unwind}")
            self.assertGreaterEqual(unwind[key], 0, unwind)
        self.assertGreater(unwind["frames"], 0, unwind)
        self.assertGreater(unwind["checked"], 0, f"no frame was checked against its frame pointer: {unwind}")
        self.assertLessEqual(unwind["contradictions"], unwind["checked"], unwind)
        # In one run's 100,000 frames there is at most one by this rule; two may be chance.
        self.assert_within(unwind["contradictions"], max(2, stack_truth.allowed_faults(unwind["frames"], 1 - MOST_CONTRADICTIONS)), unwind)
        return unwind

    def test_roots(self):
        frames = contradictions = user = lost = 0
        for version, name in cases():
            with self.subTest(version=version, mode=name):
                self.need_runtime(version)
                result = self.record(version, name)
                profile = self.check_result(result, minimum_samples=500)
                roots = Roots(profile)
                print(f"{version} {name}: {100 * roots.share:.3f} % of {roots.user}; {result.stats.get('unwind')}", flush=True)
                self.assertGreater(profile.with_frame(re.compile(MODES[name][3]).search), 20, f"the work is not seen\n{result}")
                self.assertGreater(roots.user, 0.5 * profile.total)
                user += roots.user
                lost += roots.user - roots.reached
                # So many may be chance among so few samples.
                self.assert_within(roots.user - roots.reached, stack_truth.allowed_faults(roots.user, SHARE), f"{version} {name}: {roots}")
                unwind = self.check_unwind(result.stats)
                frames += unwind["frames"]
                contradictions += unwind["contradictions"]
        self.assertLessEqual(lost, stack_truth.allowed_faults(user, SHARE), f"of {user} stacks in all modes")
        self.assertLessEqual(contradictions, stack_truth.allowed_faults(frames, 1 - MOST_CONTRADICTIONS), f"of {frames} frames in all modes")


    def test_return_probes_of_others(self):
        """Another program's probes put the address of a trampoline in the caller's place; this one has planted none."""
        version = "10.0.14"
        self.need_runtime(version)
        with harness.workload(version, "gc", "--seconds", 300, env={"DOTNET_gcServer": "1"}) as target, Watcher("pauses", target.host_pid) as other:
            result, _ = harness.record_window(target, CPU_SECONDS, FREQUENCY, "--no-hooks")
            pauses = other.finish()
        self.assertGreater(len(pauses), 100, "the probes were hardly hit")
        roots = Roots(self.check_result(result, minimum_samples=500))
        print(f"beside {len(pauses)} pauses that another agent saw: {100 * roots.share:.3f} % of {roots.user}", flush=True)
        self.assert_within(roots.user - roots.reached, stack_truth.allowed_faults(roots.user, SHARE), str(roots))


class RootsSelfTest(unittest.TestCase):
    def test_counts(self):
        roots = Roots(folded.parse(b"app;start_thread;a 5\napp;clone3;start_thread;a_[j] 3\napp;_start;b 2\napp;x;Workload.Program.Main_[j] 1\napp;x;y 4\n"
                                   b"app;[truncated];start_thread 1\napp;do_idle_[k] 9\napp;start_threads;a 1\napp;_dl_start;a 1\napp;Workload.Program.Mains_[j] 1\n"))
        self.assertEqual((roots.user, roots.reached, sum(roots.others.values())), (19, 12, 7))


if __name__ == "__main__":
    harness.main()
