#!/usr/bin/env python3
"""Do our names of precompiled (R2R) methods agree with the images, with crossgen2 and with running runtimes?

Each check is one run of tools/r2r_check, the program that reads images with the profiler's own code. It is found through R2R_CHECK or
CLRSAMPLER_BUILD_DIR. The output of crossgen2 is kept under build/r2r, because CoreLib takes it a minute.
"""
import glob
import os
import re
import shutil
import signal
import subprocess
import time

import check_program
import runtimes

BUILD_DIR = os.environ.get("CLRSAMPLER_BUILD_DIR", os.path.join(runtimes.SOURCE, "build", "release"))
R2R_CHECK = os.environ.get("R2R_CHECK", os.path.join(BUILD_DIR, "tools", "r2r_check", "r2r_check"))
CLRSAMPLER = os.environ.get("CLRSAMPLER", os.path.join(BUILD_DIR, "clrsampler"))
OUT = os.path.join(runtimes.BUILD, "r2r")

# Runtime functions of all R2R images of a runtime pack, counted by a reader of section 102 that shares no code with ours.
FUNCTIONS = {"8.0.30": 126918, "9.0.19": 140485, "10.0.14": 148195, "11.0.0": 166021}

# IL maps of all methods of System.Private.CoreLib, counted by a reader of section 105 that shares no code with ours.
IL_MAPS = {("8.0.30", "linux-x64"): 35949, ("9.0.19", "linux-x64"): 45536, ("10.0.14", "linux-x64"): 48656, ("11.0.0", "linux-x64"): 54996,
           ("9.0.23", "linux-arm64"): 45782, ("10.0.15", "linux-arm64"): 49039, ("11.0.0", "linux-arm64"): 55016}


def framework(version, system="linux-x64"):
    (folder,) = glob.glob(os.path.join(runtimes.pack(f"microsoft.netcore.app.runtime.{system}", version), "runtimes", system, "lib", "net*"))
    return folder


def check(*arguments):
    """Runs r2r_check; (exit status, output)."""
    done = subprocess.run([R2R_CHECK, *arguments], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


def written_map(image, *folders):
    """Lines of the r2rmap that clrsampler makes of the image."""
    references = [word for folder in folders for word in ("--reference", folder)]
    done = subprocess.run([CLRSAMPLER, "r2rmap", "--write", image, *references], capture_output=True, text=True, timeout=600)
    if done.returncode or done.stderr:
        raise AssertionError(f"{image}: {done.stderr}")
    return done.stdout.splitlines()


def field(line, name):
    return int(re.search(rf" {name} (\d+)", line).group(1))


def crossgen(version, arch, inputs, variant, *options):
    """The folder that holds the compiled image and its map; compiled once."""
    out = os.path.join(OUT, version, arch, variant)
    if os.path.exists(os.path.join(out, ".complete")):
        return out
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    compiler = os.path.join(runtimes.crossgen(version), "crossgen2")
    os.chmod(compiler, 0o755)
    name = "all.r2r.dll" if "--composite" in options else os.path.basename(inputs[0])
    command = [compiler, *inputs, f"-r:{framework(version)}/*.dll", "--targetos", "linux", "--targetarch", arch, "-O",
               "--perfmap", "--perfmap-format-version:1", *options, "-o", os.path.join(out, name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}\n{(done.stdout + done.stderr)[-2000:]}")
    open(os.path.join(out, ".complete"), "w").close()
    return out


class R2rNames(check_program.CheckProgramTest):
    def assert_map_agrees(self, version, folder):
        (r2rmap,) = glob.glob(os.path.join(folder, "*.r2rmap"))
        image = r2rmap.replace(".ni.r2rmap", ".dll")
        status, output = check("--references", framework(version), "map", image, r2rmap)
        print(f"  {version} {os.path.relpath(folder, OUT)}: {output.strip()}", flush=True)
        self.assertEqual(status, 0, output)
        self.assertGreater(field(output, "rows"), 0)
        self.assertEqual(field(output, "rows"), field(output, "equal"))
        with open(r2rmap) as file:
            theirs = file.read().splitlines()
        ours = written_map(image, framework(version))
        if f"{os.sep}arm64{os.sep}" in folder:
            # Their lengths include constants behind the code.
            theirs, ours = ([re.sub(r"^(\w+) \w+ ", r"\1 ", line) for line in lines] for lines in (theirs, ours))
        self.assertEqual(ours, theirs)

    def test_the_written_map_of_the_core_library_is_whole(self):
        for (version, system), expected in IL_MAPS.items():
            with self.subTest(f"{version} {system}"):
                image = os.path.join(self.need(framework, version, system), "System.Private.CoreLib.dll")
                lines = written_map(image)
                print(f"  {version} {system}: {len(lines) - 5} rows", flush=True)
                # Each method has an IL map, but for those that the compiler gave none.
                self.assertEqual(len(lines) - 5, expected)

    def test_every_function_of_the_runtime_packs_is_named(self):
        for version, expected in FUNCTIONS.items():
            with self.subTest(version):
                folder = self.need(framework, version)
                status, output = check("coverage", *sorted(glob.glob(os.path.join(folder, "*.dll"))))
                self.assertEqual(status, 0, output[-3000:])
                total = sum(field(line, "functions") for line in output.splitlines())
                print(f"  {version}: {len(output.splitlines())} images, {total} functions, all named", flush=True)
                self.assertEqual(total, expected)

    def test_every_method_of_the_runtime_packs_has_a_whole_il_map(self):
        for (version, system), expected in IL_MAPS.items():
            with self.subTest(f"{version} {system}"):
                folder = self.need(framework, version, system)
                status, output = check("il-maps", *sorted(glob.glob(os.path.join(folder, "*.dll"))))
                self.assertEqual(status, 0, output[-3000:])
                total = sum(field(line, "il-maps") for line in output.splitlines())
                print(f"  {version} {system}: {len(output.splitlines())} images, {total} IL maps, all whole", flush=True)
                self.assertEqual(sum(field(line, "none") for line in output.splitlines()), 0)
                (core,) = [line for line in output.splitlines() if line.startswith("System.Private.CoreLib ")]
                self.assertEqual(field(core, "il-maps"), expected)

    def test_every_function_of_the_installed_frameworks_is_named(self):
        text = subprocess.run([self.need(runtimes.dotnet), "--list-runtimes"], capture_output=True, text=True, timeout=300).stdout
        found = [(line.split()[0], line.split()[1], line[line.index("[") + 1:-1]) for line in text.splitlines() if "[" in line]
        core = [f"{path}/{version}" for name, version, path in found if name == "Microsoft.NETCore.App"]
        for name, version, path in found:
            with self.subTest(f"{name} {version}"):
                references = [x for folder in core for x in ("--references", folder)]
                status, output = check(*references, "coverage", *sorted(glob.glob(f"{path}/{version}/*.dll")))
                self.assertEqual(status, 0, output[-3000:])
                total = sum(field(line, "functions") for line in output.splitlines())
                print(f"  {name} {version}: {len(output.splitlines())} images, {total} functions, all named", flush=True)
                self.assertGreater(total, 1000)

    def test_recompiled_images_agree_with_their_maps(self):
        for version in runtimes.selected(runtimes.PACKED_VERSIONS):
            self.need(runtimes.crossgen, version)
            for arch in ("x64", "arm64"):
                # CoreLib takes the compiler a minute.
                for name in ("System.Linq", "System.Text.Json", *(("System.Private.CoreLib",) if runtimes.MATRIX else ())):
                    with self.subTest(f"{name} {version} {arch}"):
                        source = os.path.join(self.need(framework, version), name + ".dll")
                        self.assert_map_agrees(version, crossgen(version, arch, [source], name))

    def test_cross_module_inlining_agrees(self):
        for version in runtimes.selected(runtimes.PACKED_VERSIONS):
            self.need(runtimes.crossgen, version)
            with self.subTest(version):
                source = os.path.join(self.need(framework, version), "System.Text.Json.dll")
                self.assert_map_agrees(version, crossgen(version, "x64", [source], "cross-module", "--opt-cross-module:*"))

    def test_composite_images_agree(self):
        for version in runtimes.selected(runtimes.PACKED_VERSIONS):
            self.need(runtimes.crossgen, version)
            for arch in ("x64", "arm64"):
                with self.subTest(f"{version} {arch}"):
                    folder = self.need(framework, version)
                    sources = [os.path.join(folder, f"System.{name}.dll") for name in ("Linq", "Collections", "Text.Json")]
                    self.assert_map_agrees(version, crossgen(version, arch, sources, "composite", "--composite", "--inputbubble"))

    def test_hot_cold_splitting_agrees(self):
        version = "10.0.14"
        self.need(runtimes.crossgen, version)
        source = os.path.join(self.need(framework, version), "System.Linq.dll")
        folder = crossgen(version, "x64", [source], "hot-cold", "--hot-cold-splitting")
        self.assert_map_agrees(version, folder)
        status, output = check("--references", framework(version), "coverage", os.path.join(folder, "System.Linq.dll"))
        self.assertEqual(status, 0, output)
        self.assertGreater(field(output, "cold"), 100)

    def test_live_runs_agree(self):
        for version in runtimes.selected(runtimes.PACKED_VERSIONS):
            for mode in ("json", "regex", "linq", "async") if runtimes.MATRIX else ("json", "async"):
                with self.subTest(f"{version} {mode}"):
                    command, environment = self.need(runtimes.command, version, mode, "--seconds", "120")
                    folder = os.path.join(OUT, "live", version, mode)
                    shutil.rmtree(folder, ignore_errors=True)
                    os.makedirs(folder)
                    # The app image of the workload is IL; DOTNET_TieredCompilation stays as it is, so that R2R code is used.
                    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=dict(
                        os.environ, DOTNET_PerfMapEnabled="1", DOTNET_PerfMapJitDumpPath=folder, DOTNET_PerfMapShowOptimizationTiers="1",
                        **environment))
                    try:
                        # The clock is that of CPU time, so that it has come to its work on a slow machine, too.
                        deadline, clock = time.monotonic() + 90, (~process.pid << 3) | 2
                        while time.clock_gettime(clock) < 3 and time.monotonic() < deadline:
                            time.sleep(0.1)
                        with open(f"/proc/{process.pid}/maps") as maps, open(os.path.join(folder, "maps"), "w") as copy:
                            copy.write(maps.read())
                    finally:
                        process.send_signal(signal.SIGTERM)
                        process.wait(timeout=180)
                    (dump,) = glob.glob(os.path.join(folder, "jit-*.dump"))
                    status, output = check("jitdump", dump, os.path.join(folder, "maps"))
                    print(f"  {version} {mode}: {output.strip().split(' ', 1)[1]}", flush=True)
                    self.assertEqual(status, 0, output)
                    self.assertGreater(field(output, "equal"), 300)


if __name__ == "__main__":
    check_program.main(R2R_CHECK)
