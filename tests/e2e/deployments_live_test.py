#!/usr/bin/env python3
"""Are precompiled and ahead-of-time compiled methods named in every form in which people deploy .NET programs?

JIT-compiled frames are named by a perf map here (DOTNET_PerfMapEnabled=3), so that what is missing is precompiled code.
"""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import time

import deployments
import harness
import runtimes

R2R_CHECK = os.environ.get("R2R_CHECK", os.path.join(os.path.dirname(harness.AGENT), "tools", "r2r_check", "r2r_check"))
COMPILED_AT_RUN_TIME = ("trimmed",)
IN_MEMORY = ("single-file-compressed", "single-file-r2r-compressed")
AHEAD_OF_TIME = ("native-aot", "native-aot-stripped")
# Composites take minutes to publish each; one version of each shape is enough.
EXPENSIVE = {"composite": "10.0.14", "single-file-r2r": "9.0.19", "single-file-r2r-compressed": "9.0.19"}


class DeploymentsLiveTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def cases(self, forms, versions=runtimes.PACKED_VERSIONS):
        forms = list(forms)
        for version in versions:
            for form in forms:
                if EXPENSIVE.get(form, version) != version:
                    continue
                with self.subTest(f"{form} {version}"):
                    try:
                        argv = deployments.publish(form, version)
                    except runtimes.Missing as reason:
                        known = deployments.KNOWN_MISSING.get((form, version))
                        print(f"SKIPPED {form} {version}: {known or reason}", flush=True)
                        if harness.REQUIRE_LIVE and not known:
                            raise
                        continue
                    yield form, version, argv

    def record(self, argv, mode, env, *options):
        with harness.Target([*argv, mode, "--seconds", "60"], env=env) as target:
            return harness.record("--pid", str(target.host_pid), "--duration", "4", "--frequency", "499", *options)

    def test_managed_frames_are_named(self):
        for form, version, argv in self.cases(form for form in deployments.FORMS if form not in AHEAD_OF_TIME):
            # The linker takes away what the reflection of `startup` looks for.
            mode = "linq" if form.startswith("trimmed") else "startup"
            result = self.record(argv, mode, {"DOTNET_PerfMapEnabled": "3"})
            self.check_result(result, minimum_samples=500)
            self.check_managed_named(result, minimum=0.999)
            stats = result.stats["frames"]
            self.assertEqual([r for r in stats["unnamed_reasons"] if r.startswith("[r2r")], [])
            precompiled = stats["by_source"]["r2r-image"]
            print(f"  {version} {form}: managed {stats['managed']}, by image {precompiled}", flush=True)
            if form in COMPILED_AT_RUN_TIME:
                self.assertEqual(precompiled, 0)
            elif form != "trimmed-r2r":
                self.assertGreater(precompiled, 200)

    def test_every_precompiled_method_has_the_runtimes_own_name(self):
        """Address by address, all methods that the runtime says it prepared, not only sampled ones."""
        if not os.access(R2R_CHECK, os.X_OK):
            self.unavailable(f"no program {R2R_CHECK}: build the target r2r_check")
        for form, version, argv in self.cases(("self-contained", "r2r", "single-file", "single-file-framework-dependent",
                                               "single-file-r2r", "composite", *IN_MEMORY)):
            folder = tempfile.mkdtemp(prefix="clrsampler-test-")
            try:
                with harness.Target([*argv, "startup", "--seconds", "60"],
                                    env={"DOTNET_PerfMapEnabled": "1", "DOTNET_PerfMapJitDumpPath": folder}) as target:
                    time.sleep(5)
                    (dump,) = glob.glob(os.path.join(folder, "jit-*.dump"))
                    done = subprocess.run([R2R_CHECK, "live", dump, str(target.host_pid)], capture_output=True, text=True, timeout=120)
            finally:
                shutil.rmtree(folder)
            print(f"  {version} {form}: {done.stdout.strip()}", flush=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            counts = {name: int(value) for name, value in re.findall(r"(\S+) (\d+)", done.stdout.splitlines()[-1])}
            self.assertGreater(counts["equal"], 1000)
            self.assertEqual(counts["in-memory"], counts["equal"] if form in IN_MEMORY else 0)

    def test_ahead_of_time_methods_are_named(self):
        for form, version, argv in self.cases(AHEAD_OF_TIME):
            result = self.record(argv, "linq", {})
            profile = self.check_result(result, minimum_samples=500)
            print(f"  {version} {form}: {result.stats['frames']['managed']}", flush=True)
            names = profile.frames("j")
            if form == "native-aot":
                self.check_managed_named(result, minimum=0.999)
                self.assertEqual([n for n in names if re.match(r"workload!0x", n)], [])
                # The program's own methods, under the names that they have in its source: those that have a tenth of the samples.
                for name in ("Workload.Loops.LinqOf", "Workload.Loops.Orders.<lambda_3_0>"):
                    self.assertGreater(names[name + "_[j]"], 0, sorted(names)[:50])
            else:
                self.assertGreater(sum(c for n, c in names.items() if re.fullmatch(r"workload!0x[0-9a-f]+_\[j\]", n)), 500)
                self.assertIn("NativeAOT program without symbols", result.err)

    def test_ahead_of_time_frames_are_what_other_runtimes_print(self):
        """The names of the program's own methods, as a JIT-compiled run has them."""
        own = {}
        for form, _, argv in self.cases(("framework-dependent", "native-aot"), ["9.0.19"]):
            # A profile of its calls lets the JIT compiler inline what NativeAOT's can't.
            result = self.record(argv, "linq", {"DOTNET_PerfMapEnabled": "3", "DOTNET_TieredPGO": "0"})
            own[form] = {n: count for n, count in result.profile.frames("j").items() if n.startswith("Workload.Loops.")}
        if len(own) < 2:
            self.unavailable("NativeAOT of 9.0.19 could not be published")
        # A name that is met 20 times in one run and never in the other is another one there: by luck in one of e^20.
        often = {n for n, count in own["native-aot"].items() if count >= 20}
        self.assertGreater(len(often), 3)
        self.assertEqual(often - set(own["framework-dependent"]), set())


if __name__ == "__main__":
    harness.main()
