#!/usr/bin/env python3
"""The .NET tool: packed from the static programs, installed by the SDK from a folder and from nowhere else, in a fresh home, and used on a running
service. And the archives of these programs."""
import base64
import filecmp
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
import zlib

import harness
import runtimes

PACK = os.path.join(runtimes.SOURCE, "tools", "packaging", "dotnet_tool", "pack")
STATIC_BUILD = os.environ.get("CLRSAMPLER_STATIC_BUILD", os.path.join(runtimes.SOURCE, "build", "static"))
ARM64_BUILD = os.environ.get("CLRSAMPLER_ARM64_BUILD", os.path.join(runtimes.SOURCE, "build", "aarch64"))
BUILDS = {"linux-x64": STATIC_BUILD, "linux-musl-x64": STATIC_BUILD, "linux-arm64": ARM64_BUILD}
MOST_BYTES = 15_000_000
FEED = """<configuration>
  <packageSources><clear /><add key="folder" value="{}" /></packageSources>
</configuration>
"""


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, **options)


def program_of(rid):
    return f"tools/any/{rid}/clrsampler"


def check_static_programs():
    for preset, folder in (("static", STATIC_BUILD), ("aarch64", ARM64_BUILD)):
        if not os.path.exists(os.path.join(folder, "clrsampler")):
            raise harness.Missing(f"no {folder}/clrsampler: cmake --preset {preset} && cmake --build --preset {preset}")


class DotnetToolTest(harness.LiveTest):
    NEEDS = ("dotnet", "cmake", "qemu-aarch64-static")

    @classmethod
    def check_needs(cls):
        super().check_needs()
        check_static_programs()
        major = int(run("dotnet", "--version").stdout.split(".")[0])
        if major < 10:
            raise harness.Missing(f"packages by runtime identifier take the SDK of .NET 10, and this is {major}")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.mkdtemp(prefix="clrsampler-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.feed = os.path.join(cls.folder, "feed")
        cls.pack(cls.feed)

    @staticmethod
    def pack(folder, builds=None):
        done = run(PACK, "--output", folder, *(f"{rid}={build}" for rid, build in (builds or BUILDS).items()))
        if done.returncode:
            raise AssertionError(done.stderr)

    def must(self, *command, **options):
        done = run(*command, **options)
        self.assertEqual(done.returncode, 0, f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def fresh_home(self):
        """The environment of a user who has never run anything, and the configuration that knows the folder of our packages alone."""
        home = tempfile.mkdtemp(dir=self.folder)
        config = os.path.join(home, "nuget.config")
        with open(config, "w", encoding="utf-8") as f:
            f.write(FEED.format(self.feed))
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return {**kept, **runtimes.QUIET, "HOME": home, "DOTNET_CLI_HOME": home}, config

    def install(self, **additions):
        """The command that a user calls afterwards, and its environment."""
        environment, config = self.fresh_home()
        self.must("dotnet", "tool", "install", "-g", "clrsampler", "--configfile", config, env={**environment, **additions}, cwd=environment["HOME"])
        return os.path.join(environment["HOME"], ".dotnet", "tools", "clrsampler"), environment

    def check_records_a_service(self, agent, environment):
        """A page of a running web service, with the counts of the folded text that is written beside it."""
        try:
            command, additions = runtimes.command(runtimes.INSTALLED, "web", "--seconds", "120", program="web")
        except harness.Missing as reason:
            self.unavailable(str(reason))
        page = os.path.join(self.folder, "service.html")
        with harness.Target(command, env=additions) as target:
            result = harness.record("--pid", str(target.host_pid), "--duration", "3s", "--frequency", "499", "--output", page,
                                    agent=agent, env=environment)
        profile = self.check_result(result, minimum_samples=300)
        self.check_managed_named(result)
        self.assertTrue(any(re.match(r"Microsoft\.AspNetCore\.Server\.Kestrel\.", frame) for frame in profile.frames("j")), result)
        with open(page, encoding="utf-8") as f:
            data = re.search(r'id="profile">(.*?)</script>', f.read(), re.S)[1]
        shown = json.loads(zlib.decompress(base64.b64decode(data)))
        self.assertEqual(sum(shown["cells"]["weight"]), profile.total)

    def test_packages_are_small_and_whole(self):
        version = self.must(harness.AGENT, "--version").split()[1]
        self.assertEqual(sorted(os.listdir(self.feed)), sorted(f"clrsampler{rid}.{version}.nupkg" for rid in ("", *(f".{rid}" for rid in BUILDS))))
        programs = {}
        for name in os.listdir(self.feed):
            path = os.path.join(self.feed, name)
            self.assertLessEqual(os.path.getsize(path), MOST_BYTES, name)
            with zipfile.ZipFile(path) as package:
                self.assertIsNone(package.testzip())
                self.assertLessEqual({"LICENSE", "COPYRIGHT", "README.md", "[Content_Types].xml", "_rels/.rels"}, set(package.namelist()))
                programs.update({entry: package.read(entry) for entry in package.namelist() if entry.endswith("/clrsampler")})
        self.assertEqual(set(programs), set(map(program_of, BUILDS)))
        # A static program does not care for the libc.
        self.assertEqual(programs[program_of("linux-x64")], programs[program_of("linux-musl-x64")])

    def test_equal_programs_give_equal_packages(self):
        again = os.path.join(self.folder, "again")
        self.pack(again)
        names = os.listdir(self.feed)
        self.assertEqual(filecmp.cmpfiles(self.feed, again, names, shallow=False), (names, [], []))

    def test_refuses_programs_that_would_not_start(self):
        for builds, said in (({"linux-x64": os.path.dirname(harness.AGENT)}, "is not static"),
                             ({"linux-x64": ARM64_BUILD}, "is for another machine"),
                             ({"linux-x64": self.folder}, "No such file"),
                             ({"win-x64": STATIC_BUILD}, "is not RID=BUILD_FOLDER")):
            with self.subTest(said=said):
                folder = os.path.join(self.folder, "refused")
                done = run(PACK, "--output", folder, *(f"{rid}={build}" for rid, build in builds.items()))
                self.assertEqual(done.returncode, 1)
                self.assertIn(said, done.stderr)
                self.assertFalse(os.path.exists(folder))

    def test_installed_in_a_fresh_home_it_records_a_service(self):
        command, environment = self.install()
        self.assertEqual(self.must(command, "--version", env=environment), self.must(harness.AGENT, "--version"))
        # The library is looked for beside the program that the command leads to.
        self.assertTrue(os.path.isfile(os.path.join(os.path.dirname(os.path.realpath(command)), "libclrsampler_profiler.so")))
        self.check_records_a_service([command], environment)
        self.must("dotnet", "tool", "uninstall", "-g", "clrsampler", env=environment)
        self.assertFalse(os.path.lexists(command))

    def test_without_installing_it_records_a_service(self):
        environment, config = self.fresh_home()
        # Behind -- everything is ours: dnx has options of its own, --source and --version among them.
        self.check_records_a_service(["dotnet", "dnx", "--yes", "--configfile", config, "clrsampler", "--"], environment)

    def test_each_system_gets_its_own_package(self):
        version = self.must(harness.AGENT, "--version")
        for rid, emulator in (("linux-x64", ()), ("linux-musl-x64", ()), ("linux-arm64", ("qemu-aarch64-static",))):
            with self.subTest(rid=rid):
                command, environment = self.install(DOTNET_RUNTIME_ID=rid)  # what the SDK takes this machine for
                program = os.path.realpath(command)
                self.assertTrue(program.endswith("/" + program_of(rid)), program)
                self.assertEqual(self.must(*emulator, program, "--version", env=environment), version)


class ArchiveTest(harness.LiveTest):
    """The same programs as archives, which run wherever they are unpacked."""
    NEEDS = ("cpack", "qemu-aarch64-static")

    @classmethod
    def check_needs(cls):
        super().check_needs()
        check_static_programs()

    def test_unpacked_it_runs(self):
        version = subprocess.run([harness.AGENT, "--version"], capture_output=True, text=True, check=True).stdout
        for machine, build, emulator in (("x64", STATIC_BUILD, ()), ("arm64", ARM64_BUILD, ("qemu-aarch64-static",))):
            with self.subTest(machine=machine), tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
                done = run("cpack", "-G", "TGZ", "-B", folder, cwd=build)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                name = f"clrsampler-{version.split()[1]}-linux-{machine}"
                archive = os.path.join(folder, name + ".tar.gz")
                self.assertLessEqual(os.path.getsize(archive), MOST_BYTES)
                with tarfile.open(archive) as tar:
                    tar.extractall(folder, filter="data")
                top = os.path.join(folder, name)
                for path in ("lib/clrsampler/libclrsampler_profiler.so", "share/man/man1/clrsampler.1", "share/doc/clrsampler/LICENSE"):
                    self.assertTrue(os.path.isfile(os.path.join(top, path)), path)
                self.assertEqual(run(*emulator, os.path.join(top, "bin", "clrsampler"), "--version").stdout, version)


if __name__ == "__main__":
    harness.main()
