#!/usr/bin/env python3
"""The judge of stacks: it must accept what is right and notice each fault, or the live tests prove nothing."""
import unittest

import folded
import stack_truth

START = "clone3;start_thread;libcoreclr.so!0x10;libcoreclr.so!0x11;System.Threading.Thread.StartCallback_[j]"
TRUTH = {
    "mode": "test", "prefix": "constant", "optional": [["Shapes.Program.Main"]],
    "chains": [["Shapes.R", "Shapes.A", "Shapes.B", "Shapes.Leaf"], ["Shapes.R", "Shapes.I", "~stub", "Shapes.J"], ["Shapes.R", "Shapes.Deep*5", "Shapes.Bottom"],
               ["Shapes.R", "Shapes.P", "~pinvoke", "~libc+", "~reverse", "Shapes.Q"], ["Shapes.R", "Shapes.T", "~throw"],
               ["Shapes.R", "Shapes.T", "~throw+", "Shapes.H"]],
}


def line(own, start=START):
    """Own frames are named by their last word; a frame with other signs stands for itself, + being a space."""
    frames = [f"Shapes.{f}_[j]" if f.isalpha() else f.replace("+", " ") for f in own.split()]
    return ";".join([start, *frames] if start else frames)


def judged(*lines, truth=TRUTH):
    data = "".join(f"app;{text} {count}\n" for text, count in lines).encode()
    return stack_truth.judge(folded.parse(data), stack_truth.Truth(truth))


def kind(text, truth=TRUTH):
    counts = judged((line("R A B Leaf"), 100), (text, 1), truth=truth).counts
    counts["exact"] -= 100
    ((found, _),) = [(k, n) for k, n in counts.items() if n]
    return found


class JudgeTest(unittest.TestCase):
    def test_exact(self):
        for own in ("R", "R A", "R A B", "R A B Leaf", "R I J", "R I [stub]_[j] J", "R I [stub+VSD]_[j] J",
                    "R Deep Deep Deep Deep Deep Bottom", "R Deep Deep", "R P libc.so.6!0x33 Q", "R P [stub]_[j] libc.so.6!0x33 qsort_r [stub]_[j] Q",
                    "R P Shapes.Native.qsort_[j] qsort_r Internal_CompilerGenerated__Module___<ReverseDelegateStub>app_Callback_[j] Q",
                    "R A do_syscall_64_[k]", "R A B Leaf asm_exc_[k] irq_[k]", "R A libcoreclr.so!0x10 __tls_get_addr", "R A System.Threading.Thread.Sleep_[j]",
                    "R A B Leaf libcoreclr.so!0x77 __restore_rt", "R T libcoreclr.so!0x1 _Unwind_RaiseException", "R T System.Runtime.EH.RhThrowEx_[j]",
                    "R T libcoreclr.so!0x1 System.Runtime.EH.DispatchEx_[j] H"):
            with self.subTest(own):
                self.assertEqual(kind(line(own)), "exact")

    def test_each_frame_left_out(self):
        full = "R A B Leaf".split()
        for out in range(1, 3):
            with self.subTest(out):
                self.assertEqual(kind(line(" ".join(full[:out] + full[out + 1:]))), "missing")
        self.assertEqual(kind(line("A B Leaf")), "missing")
        self.assertEqual(kind(line("R Deep Deep Deep Deep Bottom")), "missing")
        self.assertEqual(kind(line("R P Q")), "missing")
        self.assertEqual(kind(line("R P [stub]_[j] Q")), "missing")
        self.assertEqual(kind(line("R T H")), "missing")

    def test_each_frame_invented(self):
        for own in ("R A A B Leaf", "R A B B Leaf", "R B A Leaf", "R A I Leaf", "R A B Leaf A", "R A J", "R A B libcoreclr.so!0x1 Leaf", "R A [stub]_[j] B Leaf",
                    "R A System.String.Concat_[j] B Leaf", "R I libcoreclr.so!0x1 J", "R I System.String.Concat_[j] J", "R Deep Deep Deep Deep Deep Deep Bottom",
                    "R A B Leaf System.String.Concat_[j]", "R A B Other", "R A R A B Leaf", "R A Shapes.Native.qsort_[j] B", "R A B Leaf Shapes.Native.qsort_[j]", "R P libpthread.so!0x1 Q", "R T System.String.Concat_[j] H"):
            with self.subTest(own):
                self.assertEqual(kind(line(own)), "invented")

    def test_each_change_of_a_deep_chain(self):
        names = [f"Shapes.E{i:02}" for i in range(40)]
        truth = {**TRUTH, "chains": [*TRUTH["chains"], names]}

        def changed(frames):
            return kind(";".join([START, *(f"{frame}_[j]" for frame in frames)]), truth)

        self.assertEqual(changed(names), "exact")
        for i in range(40):
            self.assertEqual(changed(names[:i] + names[i + 1:]), "missing" if i < 39 else "exact", i)
            self.assertEqual(changed(names[:i + 1] + names[i:]), "invented", i)
            self.assertEqual(changed(names[:i] + ["Shapes.Leaf"] + names[i:]), "invented", i)
            if i < 39:
                self.assertEqual(changed(names[:i] + [names[i + 1], names[i]] + names[i + 2:]), "invented", i)

    def test_cut(self):
        for own, start in (("R A B Leaf", "libcoreclr.so!0x10"), ("R A B Leaf", ""), ("B Leaf", ""), ("Leaf", ""), ("Deep Deep Bottom", "")):
            with self.subTest(own=own, start=start):
                self.assertEqual(kind(line(own, start)), "cut")
        self.assertEqual(kind("libcoreclr.so!0x10;libcoreclr.so!0x20"), "cut")

    def test_other_threads(self):
        self.assertEqual(kind("start_thread;libclrjit.so!0x10"), "elsewhere")
        self.assertEqual(kind("do_idle_[k]"), "elsewhere")
        self.assertEqual(judged(("start_thread;libclrjit.so!0x10", 5)).judged, 0)

    def test_unnamed(self):
        self.assertEqual(kind(line("R A B Leaf", "start_thread;[jit: no map]_[j]")), "unnamed")
        self.assertEqual(kind(line("R A B Leaf [jit:+x]_[j]")), "unnamed")
        self.assertEqual(kind(line("R A [jit:+x]_[j] B Leaf")), "unnamed")
        self.assertEqual(kind(line("R A [jit:+x]_[j] Leaf")), "unnamed")

    def test_a_mark_of_doubt_is_no_invention(self):
        self.assertEqual(kind(line("R A [caller+may+be+missing] B Leaf")), "unnamed")
        self.assertEqual(kind(line("R A B Leaf", "clone3;start_thread;[caller may be missing]")), "unnamed")

    def test_an_entry_of_the_plt_is_below_the_own_frames(self):
        self.assertEqual(kind(line("R A B") + ";shapes_inner@plt"), "exact")
        self.assertNotEqual(kind(line("R A") + ";shapes_inner@plt;Shapes.B_[j]"), "exact")

    def test_above_the_own_frames(self):
        self.assertEqual(kind(line("R A", "clone3;start_thread;System.Threading.Thread.StartCallback_[j]")), "missing")
        self.assertEqual(kind(line("R A", START + ";System.String.Concat_[j]")), "invented")
        self.assertEqual(kind(line("R A", "_start")), "invented")
        self.assertEqual(kind(line("R A", "start_thread"), {**TRUTH, "prefix": "any"}), "exact")
        self.assertEqual(kind("dotnet!0x6bb0;__libc_start_main;dotnet!0x10;Shapes.Program.Main_[j]"), "exact")
        self.assertEqual(kind("dotnet!0x6bb0;dotnet!0x10;Shapes.Program.Main_[j]"), "cut")
        self.assertEqual(kind("_start;__libc_start_main_impl;Shapes.Program.Main_[j]"), "exact")

    def test_all_own_frames_left_out(self):
        self.assertEqual(kind(START + ";libcoreclr.so!0x99"), "missing")
        self.assertEqual(kind(START + ";System.String.Concat_[j];asm_exc_[k]"), "missing")
        self.assertEqual(kind(START), "elsewhere")
        self.assertEqual(kind("clone3;start_thread;libcoreclr.so!0x99"), "elsewhere")
        self.assertEqual(kind(START + ";asm_exc_[k]"), "elsewhere")
        self.assertEqual(kind(START + ";libcoreclr.so!0x99", {**TRUTH, "prefix": "any"}), "elsewhere")

    def test_counts(self):
        verdict = judged((line("R A B Leaf"), 970), (line("R A"), 20), (line("R B Leaf"), 4), (line("R Leaf A"), 3), (line("A", ""), 3), ("start_thread", 50))
        self.assertEqual((verdict.judged, verdict.faults, verdict.share), (1000, 10, 0.99))
        self.assertEqual(verdict.counts, {"exact": 990, "missing": 4, "invented": 3, "cut": 3, "unnamed": 0, "elsewhere": 50})
        self.assertEqual(verdict.whole, {0: 970})
        text = str(verdict)
        self.assertIn("99.000 % of 1000", text)
        self.assertLess(text.index("  3 invented: "), text.index("  4 missing: "))
        self.assertIn("Shapes.B_[j] where Shapes.A belongs", text)

    def test_refuses_a_truth_that_makes_no_sense(self):
        for change in ({"prefix": "some"}, {"chains": [["Shapes.A", "~nonsense", "Shapes.B"]]}, {"chains": [[]]}, {"chains": [["~stub", "Shapes.A"]]}):
            with self.subTest(change=change), self.assertRaises(stack_truth.BadTruth):
                stack_truth.Truth({**TRUTH, **change})

    def test_allowed_faults(self):
        # Tables of the Poisson distribution: mean 2: P(X > 7) = 0.0011, P(X > 8) = 0.0002, P(X > 12) = 2e-7, P(X > 13) = 3e-8; mean 32: P(X > 51) = 0.0006.
        self.assertEqual(stack_truth.allowed_faults(2000, 0.999, luck=0.001), 8)
        self.assertIn(stack_truth.allowed_faults(32000, 0.999, luck=0.001), range(49, 53))
        self.assertEqual(stack_truth.allowed_faults(2000, 0.999), 13)
        self.assertEqual(stack_truth.allowed_faults(100, 1.0), 0)
        self.assertEqual(stack_truth.allowed_faults(0, 0.999), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
