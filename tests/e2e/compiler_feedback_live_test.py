#!/usr/bin/env python3
"""What was sampled, given to linkers and to crossgen2: do they build the program in that order, and does it run?"""
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile

import harness
import runtimes

# Each function burns its share of the CPU time, and stands in the source in another order than by that.
C_SOURCE = """
#include <stdint.h>
static volatile uint64_t sink;
#define BURN(name, turns) __attribute__((noinline)) void name(void) { for (uint64_t i = 0; i < turns; ++i) sink += i * sink; }
#define NEVER(name) __attribute__((noinline)) void name(void) { sink ^= sizeof(#name); }
NEVER(never_a)
BURN(seldom, 600000)
NEVER(never_b)
__attribute__((noinline)) static void load(void) { for (uint64_t i = 0; i < 40000000; ++i) sink += i; }
BURN(often, 8000000)
NEVER(never_c)
BURN(always, 24000000)
NEVER(never_d)
int main(int argc, char **argv) {
  if (argc > 5) { never_a(); never_b(); never_c(); never_d(); }
  load();
  for (int i = 0; i < 10; ++i) { always(); often(); seldom(); }
  return 0;
}
"""
CPP_SOURCE = """
#include <cstdint>
namespace shop {
volatile uint64_t sink;
struct Order { __attribute__((noinline)) void Cold(int) { sink = 1; } __attribute__((noinline)) void Total(int n) { while (n-- > 0) sink += n; } };
}
int main(int argc, char **) { shop::Order o; if (argc > 5) o.Cold(1); o.Total(200000000); }
"""

AOT_PROJECT = """
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType><TargetFramework>net{major}.0</TargetFramework><PublishAot>true</PublishAot>
    <InvariantGlobalization>true</InvariantGlobalization><StripSymbols>false</StripSymbols>
  </PropertyGroup>
  <ItemGroup Condition="'$(Order)' != ''"><IlcArg Include="--method-layout:explicit" /><IlcArg Include="--order:$(Order)" /></ItemGroup>
</Project>
"""
AOT_SOURCE = """
using System.Runtime.CompilerServices;
static class Shop {
  static ulong sink;
  static void Burn(ulong turns) { for (ulong i = 0; i < turns; ++i) sink += i * sink; }
  [MethodImpl(MethodImplOptions.NoInlining)] static void Seldom() => Burn(600000);
  [MethodImpl(MethodImplOptions.NoInlining)] static void Never() { sink ^= 1; }
  [MethodImpl(MethodImplOptions.NoInlining)] static void Often() => Burn(8000000);
  [MethodImpl(MethodImplOptions.NoInlining)] static void Always() => Burn(24000000);
  static void Main(string[] a) { if (a.Length > 4) Never(); for (int i = 0; i < 10; ++i) { Always(); Often(); Seldom(); } }
}
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **options)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def symbols(program):
    """Functions of an ELF file in the order of their addresses."""
    return [line.split()[2] for line in run("nm", "--numeric-sort", "--defined-only", program).splitlines() if line.split()[1] in "tTwW"]


def order_of(path):
    with open(path) as f:
        return [line.rstrip("\n") for line in f if not line.startswith("#")]


class TemporaryFolder(harness.LiveTest):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="clrsampler-feedback-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)


class LinkersTest(TemporaryFolder):
    NEEDS = ("gcc", "g++", "nm", "ld.lld")

    def build(self, source, *flags, name="app", compiler="gcc"):
        run(compiler, "-O1", "-ffunction-sections", *flags, source, "-o", self.path(name))
        return self.path(name)

    def record(self, program, *options):
        result = harness.record("--frequency", "999", *options, "--", program, output=False)
        self.assertEqual(result.status, 0, result)
        return result

    def test_lld_puts_functions_where_the_order_says(self):
        source = self.write("app.c", C_SOURCE)
        program = self.build(source)
        result = self.record(program, "-o", self.path("hot.order"), "-o", self.path("app.json"))
        self.assertRegex(result.err, rf"hot\.order: \d+ functions of {program}, hottest first; --module NAME takes another: ")
        order = order_of(self.path("hot.order"))
        hot = [name for name in order if name in ("always", "often", "seldom", "load", "main")]
        self.assertEqual([name for name in hot if name not in ("load", "main")], ["always", "often", "seldom"])
        self.assertEqual(hot[-1], "main", "it only waits for the others")
        self.assertFalse([name for name in order if name.startswith("never")], order)

        linked = self.build(source, "-fuse-ld=lld", f"-Wl,--symbol-ordering-file={self.path('hot.order')}", "-Wl,--no-warn-symbol-ordering",
                            name="ordered")
        ordered = symbols(linked)
        self.assertEqual([name for name in ordered if name in hot], hot)
        self.assertLess(ordered.index("main"), min(ordered.index(f"never_{x}") for x in "abcd"), ordered)
        self.assertNotEqual([name for name in symbols(program) if name in hot], hot, "the linker's own order would have passed as well")
        run(linked)

    def test_the_first_samples_first(self):
        source = self.write("app.c", C_SOURCE)
        program = self.build(source)
        self.record(program, "-o", self.path("first.order"), "--order", "first", "-o", self.path("app.json"))
        order = [name for name in order_of(self.path("first.order")) if name in ("always", "often", "seldom", "load", "main")]
        self.assertEqual(order[:3], ["main", "load", "always"])
        linked = self.build(source, "-fuse-ld=lld", f"-Wl,--symbol-ordering-file={self.path('first.order')}", "-Wl,--no-warn-symbol-ordering",
                            name="ordered")
        self.assertEqual([name for name in symbols(linked) if name in order], order)
        # The file gives the same later, and says when it can't.
        run(harness.AGENT, "convert", self.path("app.json"), self.path("later.order"), "--order", "first")
        with open(self.path("first.order")) as now, open(self.path("later.order")) as later:
            self.assertEqual(later.read(), now.read())
        run(harness.AGENT, "convert", self.path("app.json"), self.path("app.folded"))
        refused = subprocess.run([harness.AGENT, "convert", self.path("app.folded"), self.path("no.order"), "--order", "first"],
                                 capture_output=True, text=True, timeout=300)
        self.assertEqual(refused.returncode, 2, refused)
        self.assertIn("hint: ", refused.stderr)

    def test_names_are_the_linkers(self):
        source = self.write("app.cc", CPP_SOURCE)
        program = self.build(source, compiler="g++")
        self.record(program, "-o", self.path("app.order"), "-o", self.path("app.pb.gz"), "-o", self.path("app.json"))
        self.assertIn("_ZN4shop5Order5TotalEi", order_of(self.path("app.order")))
        for name in ("app.pb.gz", "app.json"):
            run(harness.AGENT, "convert", self.path(name), self.path("again.order"))
            self.assertEqual(order_of(self.path("again.order")), order_of(self.path("app.order")), name)
        linked = self.build(source, "-fuse-ld=lld", f"-Wl,--symbol-ordering-file={self.path('app.order')}", compiler="g++", name="ordered")
        ordered = symbols(linked)
        self.assertLess(ordered.index("_ZN4shop5Order5TotalEi"), ordered.index("_ZN4shop5Order4ColdEi"))

    def test_gold_takes_sections(self):
        if not shutil.which("ld.gold"):
            self.skipTest("no ld.gold")
        source = self.write("app.c", C_SOURCE)
        program = self.build(source)
        self.record(program, "-o", self.path("app.order"))
        sections = self.write("app.sections", "".join(f".text.{name}\n" for name in order_of(self.path("app.order"))))
        linked = self.build(source, "-fuse-ld=gold", f"-Wl,--section-ordering-file={sections}", name="ordered")
        names = [name for name in order_of(self.path("app.order")) if name in ("always", "often", "seldom")]
        self.assertEqual([name for name in symbols(linked) if name in names], names)
        run(linked)

    def test_mip_profiles_of_every_image_and_their_sum(self):
        program = self.build(self.write("app.c", C_SOURCE))
        for i in (1, 2):
            self.record(program, "-o", self.path(f"{i}.%m.mip"))
        files = [self.path(f"{i}.app.mip") for i in (1, 2)]
        for path in files:
            with open(path, "rb") as f:
                self.assertEqual(f.read(4), b"\xfbMIP", path)
        summed = self.path("sum.mip")
        shutil.copy(files[0], summed)
        run(harness.AGENT, "mip", "merge", "-p", summed, files[1])

        def counts(path):
            shown, name = {}, None
            for line in run(harness.AGENT, "mip", "show", "-p", path).splitlines():
                found = re.match(r"\s+Call Count: (\d+)", line)
                if found:
                    shown[name] = int(found.group(1))
                elif line and not line.startswith(" "):
                    name = line.strip()
            return shown

        one, two, total = counts(files[0]), counts(files[1]), counts(summed)
        self.assertIn("always", total)
        for name in total:
            self.assertEqual(total[name], one.get(name, 0) + two.get(name, 0), name)
        order = [line for line in run(harness.AGENT, "mip", "order", "-p", summed).splitlines() if line in ("main", "load", "always")]
        self.assertEqual(order, ["main", "load", "always"])


class NativeAotTest(TemporaryFolder):
    NEEDS = ("dotnet", "gcc", "nm")

    def publish(self, out, *options):
        # Objects of one build must not be taken for the other's.
        shutil.rmtree(self.path("obj"), ignore_errors=True)
        run(runtimes.dotnet(), "publish", self.path("shop.csproj"), "--nologo", "-c", "Release", "-r", "linux-x64", "-m:1", "-nodeReuse:false",
            "-o", self.path(out), "-p:UseSharedCompilation=false", *options, env=dict(os.environ, **runtimes.QUIET))
        return os.path.join(self.path(out), "shop")

    def test_the_compiler_takes_the_same_file(self):
        self.write("shop.csproj", AOT_PROJECT.replace("{major}", runtimes.installed_version().split(".")[0]))
        self.write("Shop.cs", AOT_SOURCE)
        program = self.publish("before")
        result = harness.record("--frequency", "999", "-o", self.path("shop.order"), "--", program, output=False)
        self.assertEqual(result.status, 0, result)
        wanted = [f"shop_Shop__{name}" for name in ("Always", "Often", "Seldom", "Main")]
        # Burn may stand in them or by itself: then only it runs, and they wait for it.
        self.assertEqual(sorted(set(order_of(self.path("shop.order"))) & set(wanted)), sorted(wanted))
        order = [name for name in order_of(self.path("shop.order")) if name.startswith("shop_Shop__")]
        ordered = self.publish("after", f"-p:Order={self.path('shop.order')}")
        methods = [name for name in symbols(ordered) if name.startswith("shop_Shop__")]
        self.assertEqual(methods, order + ["shop_Shop__Never"])
        self.assertNotEqual([name for name in symbols(program) if name in order], order, "its own order would have passed as well")
        run(ordered)


class CrossgenTest(TemporaryFolder):
    """The C# compiler of the SDK, at its start: a real program of 44,000 precompiled methods."""

    NEEDS = ("dotnet",)
    VERSION = runtimes.PACKED_VERSIONS[-1]
    IMAGE = "Microsoft.CodeAnalysis.CSharp"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        root = os.path.dirname(runtimes.dotnet())
        version = runtimes.installed_version()
        cls.framework = os.path.join(root, "shared", "Microsoft.NETCore.App", version)
        compilers = sorted(glob.glob(os.path.join(root, "sdk", version.split(".")[0] + ".*", "Roslyn", "bincore")))
        if not compilers or not os.path.isdir(cls.framework):
            cls.unavailable("the SDK has no C# compiler for its newest runtime")
        cls.csc = compilers[-1]
        try:
            cls.crossgen = os.path.join(runtimes.crossgen(cls.VERSION), "crossgen2")
        except runtimes.Missing as reason:
            cls.unavailable(str(reason))
        os.chmod(cls.crossgen, 0o755)

    def setUp(self):
        super().setUp()
        self.write("hello.cs", "using System; class P { static void Main() { Console.WriteLine(string.Join(\",\", new[] { 1, 2 })); } }\n")
        references = [f"-r:{path}" for path in glob.glob(os.path.join(self.framework, "*.dll")) if not os.path.basename(path).startswith("lib")]
        self.write("options.rsp", "\n".join(["-nologo", "-nostdlib", *references]) + "\n")

    def compile_command(self, folder):
        return [runtimes.dotnet(), os.path.join(folder, "csc.dll"), "-noconfig", "@" + self.path("options.rsp"), self.path("hello.cs"),
                "-out:" + self.path("hello.dll")]

    def record(self, folder, *outputs):
        options = [part for name in outputs for part in ("-o", self.path(name))]
        result = harness.record("--frequency", "4999", *options, "--", *self.compile_command(folder), output=False, timeout=180)
        self.assertEqual(result.status, 0, result)
        return result

    def methods(self, folder):
        """Owner::Name of the methods of a compiled image in the order of their addresses."""
        rows = []
        with open(os.path.join(folder, f"{self.IMAGE}.ni.r2rmap")) as f:
            for line in f:
                rva, _, name = line.rstrip("\n").split(" ", 2)
                if int(rva, 16) < 0xFFFF0000:
                    # "Return.Type[A, B] Owner+Inner[C]::Name[D](Parameter, ...)"
                    head = re.sub(r"\[[^][]*\]$", "", re.split(r"(?<=.)\((?!\))", name, maxsplit=1)[0].removesuffix("()"))
                    rows.append((int(rva, 16), head.split(" ")[-1]))
        return [name for _, name in sorted(rows)]

    def test_crossgen2_lays_methods_out_by_the_profile(self):
        self.record(self.csc, "start.json", "start.callchain.json")
        profile = self.path("own.callchain.json")
        run(harness.AGENT, "convert", self.path("start.json"), profile, "--module", self.IMAGE)
        with open(self.path("start.callchain.json")) as f:
            self.assertTrue(any("System.Private.CoreLib.dll!" in name for name in json.load(f)), "all assemblies without --module")
        with open(profile) as f:
            calls = json.load(f)
        pairs = sorted(((count, caller, callee) for caller, (callees, counts) in calls.items() for callee, count in zip(callees, counts)),
                       reverse=True)
        self.assertGreater(len(calls), 100)

        def compile_image(folder, *options):
            os.makedirs(self.path(folder))
            image = os.path.join(self.csc, f"{self.IMAGE}.dll")
            run(self.crossgen, image, f"-r:{self.framework}/*.dll", f"-r:{self.csc}/*.dll", "--targetos", "linux", "--targetarch", "x64", "-O",
                "--mapcsv", "--perfmap", "--perfmap-format-version:1", *options, "-o", os.path.join(self.path(folder), f"{self.IMAGE}.dll"))
            return self.methods(self.path(folder))

        methods = compile_image("ordered", "--method-layout", "callfrequency", "--callchain-profile", profile)

        # Most of what it was given is found under the names that we give, and stands in front of everything else.
        def symbol(name):
            owner, method = name.split("!")
            if owner.endswith(".dll"):
                for constructor in ("..cctor", "..ctor"):
                    if method.endswith(constructor):
                        return f"{method.removesuffix(constructor)}::{constructor[1:]}"
                owner, method = method.rsplit(".", 1)
            return f"{owner}::{method}"

        place = {}
        for at, name in enumerate(methods):
            place.setdefault(name, at)
        sampled = [symbol(name) for name in calls]
        known = [name for name in sampled if name in place]
        self.assertGreater(len(known) / len(sampled), 0.9, [name for name in sampled if name not in place][:10])
        in_front = [name for name in known if place[name] < len(sampled)]
        self.assertGreater(len(in_front) / len(known), 0.9)
        self.assertGreater(len(methods), 20 * len(sampled), "the whole image would be in front")

        # And in the order of the counts: what crossgen2 does with the pairs, done again with the names that are not overloaded.
        overloaded = {name for name in known if methods.count(name) > 1}
        expected = []
        for count, caller, callee in pairs:
            for name in (symbol(caller), symbol(callee)):
                if name in place and name not in overloaded and name not in expected and place[name] < len(sampled):
                    expected.append(name)
            if count * 20 < pairs[0][0]:
                break  # below that many pairs have equal counts, whose order is crossgen2's
        found = sorted(expected, key=place.get)
        inversions = sum(found.index(a) > found.index(b) for i, a in enumerate(expected) for b in expected[i + 1:])
        self.assertGreaterEqual(len(expected), 10)
        self.assertLess(inversions, 0.1 * len(expected) * (len(expected) - 1) / 2, (expected, found))

        # The image runs, and its code is used: a refused image would be compiled again in the process.
        program = self.path("program")
        shutil.copytree(self.csc, program)
        shutil.copy(os.path.join(self.path("ordered"), f"{self.IMAGE}.dll"), program)
        self.record(program, "again.json", "again.%m.mip")
        with open(self.path("again.json")) as f:
            again = json.load(f)
        strings, frames = again["strings"], again["frames"]
        own = [again["frame_kinds"][kind] for kind, module in zip(frames["kind"], frames["module"]) if strings[module] == self.IMAGE]
        self.assertGreater(own.count("r2r"), 5 * own.count("jit"), own)
        said = run(runtimes.dotnet(), "exec", "--runtimeconfig", os.path.join(self.csc, "csc.runtimeconfig.json"), self.path("hello.dll"))
        self.assertEqual(said, "1,2\n")

        # The same recording as a Machine IR Profile of that image: addresses are those of the compiler's map.
        with open(self.path(f"again.{self.IMAGE}.dll.mip"), "rb") as f:
            mip = f.read()
        (records,) = struct.unpack_from("<Q", mip, 32)
        starts = {struct.unpack_from("<i", mip, 40 + 52 * i + 12)[0] for i in range(records)}
        with open(os.path.join(self.path("ordered"), f"{self.IMAGE}.ni.r2rmap")) as f:
            mapped = {int(line.split(" ", 1)[0], 16) for line in f}
        self.assertGreater(len(starts), 100)
        self.assertEqual(starts - mapped, set())


if __name__ == "__main__":
    harness.main()
