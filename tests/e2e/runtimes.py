"""The .NET runtimes and programs that the live tests run.

Every runtime version gets a private dotnet root under build/runtimes/VERSION, laid out from the runtime pack of that version, so
nothing is installed. Packs come from the NuGet cache, or through `dotnet restore` of a generated project. All is made once and kept.
"""
import fcntl
import functools
import glob
import json
import os
import shutil
import subprocess

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("CLRSAMPLER_E2E_DIR", os.path.join(SOURCE, "build"))
PACKED_VERSIONS = ("8.0.30", "9.0.19", "10.0.14", "11.0.0")
LATER_VERSIONS = ("8.0.34", "9.0.23", "10.0.15")  # releases that the matrix has beside these
NEWEST_OF_EACH = (*LATER_VERSIONS, PACKED_VERSIONS[-1])
ARM64_VERSIONS = NEWEST_OF_EACH[1:]  # no memory of .NET 8 is read there
MUSL_VERSIONS = (NEWEST_OF_EACH[0], *NEWEST_OF_EACH[2:])  # the packs that there are for musl
INSTALLED = "installed"  # the runtime that `dotnet` on PATH picks
MATRIX = os.environ.get("CLRSAMPLER_MATRIX") == "full"  # as `ctest -L matrix` sets it
ALL = (*PACKED_VERSIONS, *(LATER_VERSIONS if MATRIX else ()), INSTALLED)


def selected(versions=ALL):
    """The oldest and the newest one of them; all in the matrix."""
    packed = [version for version in versions if version != INSTALLED]
    return versions if MATRIX else (packed[0], packed[-1])


def newest():
    """The newest one; all in the matrix. For what does not differ between versions, or is shown by other tests on the others."""
    return ALL if MATRIX else PACKED_VERSIONS[-1:]


NUGET = os.environ.get("NUGET_PACKAGES", os.path.expanduser("~/.nuget/packages"))
QUIET = {"DOTNET_NOLOGO": "1", "DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_SKIP_FIRST_TIME_EXPERIENCE": "1"}


class Missing(Exception):
    """A sentence: what a live test needs and this machine does not have."""


def dotnet():
    found = shutil.which("dotnet")
    if not found:
        raise Missing("no `dotnet` on PATH")
    return os.path.realpath(found)


def _run(command, what):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=dict(os.environ, **QUIET))
    if done.returncode:
        raise Missing(f"{what} failed: {' '.join(command)}: {(done.stdout + done.stderr).strip()[-800:]}")


class _Lock:
    """Tests may run in several processes; each thing is made by one of them."""

    def __init__(self, name):
        os.makedirs(BUILD, exist_ok=True)
        self.path = os.path.join(BUILD, f".{name}.lock")

    def __enter__(self):
        self.file = open(self.path, "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


def npm_package(name, version, place):
    """The folder of a package that npm has, installed below `place` of the build folder."""
    folder = os.path.join(BUILD, "npm", place)
    package = os.path.join(folder, "node_modules", name)
    with _Lock(f"npm-{place}"):
        if not os.path.exists(os.path.join(package, "package.json")):
            os.makedirs(folder, exist_ok=True)
            _run(["npm", "install", "--no-audit", "--no-fund", "--no-save", "--prefix", folder, f"{name}@{version}"], f"installation of {name} {version}")
    return package


def npm_packages(place, *packages):
    """The folder below `place` of the build folder that has these packages of npm, NAME@VERSION, and what they depend on; no peers, no scripts."""
    folder = os.path.join(BUILD, "npm", place)
    wanted = "\n".join(packages)
    kept = os.path.join(folder, ".packages")
    with _Lock(f"npm-{place}"):
        if not os.path.exists(kept) or _text(kept) != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            _run(["npm", "install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--legacy-peer-deps", "--prefix", folder, *packages],
                 f"installation of {', '.join(packages)}")
            with open(kept, "w", encoding="utf-8") as f:
                f.write(wanted)
    return folder


def _text(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def pack(name, version):
    """The folder of an unpacked NuGet package, downloaded if it is not in the cache."""
    folder = os.path.join(NUGET, name.lower(), version)
    with _Lock("packs"):
        if not os.path.isdir(folder):
            project_dir = os.path.join(BUILD, "packs")
            os.makedirs(project_dir, exist_ok=True)
            project = os.path.join(project_dir, "packs.csproj")
            with open(project, "w") as f:
                f.write('<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup>'
                        f'<ItemGroup><PackageDownload Include="{name}" Version="[{version}]" /></ItemGroup></Project>\n')
            _run([dotnet(), "restore", project], f"download of {name} {version}")
    if not os.path.isdir(folder):
        raise Missing(f"{name} {version} is not at {folder} after the restore")
    return folder


def crossgen(version):
    """The crossgen2 pack of a version: the folder that holds the compiler."""
    return os.path.join(pack("microsoft.netcore.app.crossgen2.linux-x64", version), "tools")


@functools.lru_cache(None)
def root(version, system="linux-x64"):
    """A dotnet root that holds exactly this runtime version. That of another machine has no `dotnet`: its programs start by their app host."""
    source = pack(f"microsoft.netcore.app.runtime.{system}", version)
    out = os.path.join(BUILD, "runtimes", version if system == "linux-x64" else f"{version}-{system}")
    with _Lock("runtimes"):
        if os.path.exists(os.path.join(out, ".complete")):
            return out
        shutil.rmtree(out, ignore_errors=True)
        native = os.path.join(source, "runtimes", system, "native")
        (managed,) = glob.glob(os.path.join(source, "runtimes", system, "lib", "net*"))
        app = os.path.join(out, "shared", "Microsoft.NETCore.App", version)
        fxr = os.path.join(out, "host", "fxr", version)
        os.makedirs(app)
        os.makedirs(fxr)
        if system == "linux-x64":
            # A muxer drives its own and every older runtime.
            shutil.copy2(dotnet(), os.path.join(out, "dotnet"))
        shutil.copy2(os.path.join(native, "libhostfxr.so"), fxr)
        for path in glob.glob(os.path.join(managed, "*")) + glob.glob(os.path.join(native, "*")):
            if not path.endswith("libhostfxr.so"):
                shutil.copy2(path, app)
        open(os.path.join(out, ".complete"), "w").close()
    return out


# An app host has this in the place of its assembly's name: the SHA-256 of "foobar", as text.
APP_HOST_PLACE = b"c3ab8ff13720e8ad9047dd39466b3c8974e592c2fa383d4a3960714caef0c4f2"


@functools.lru_cache(None)
def with_app_host(name, version, system):
    """The folder of tests/apps/NAME with an app host for another machine, `NAME`; it takes the runtime from DOTNET_ROOT."""
    source = os.path.dirname(app(name))
    host = os.path.join(pack(f"microsoft.netcore.app.host.{system}", version), "runtimes", system, "native", "apphost")
    with open(host, "rb") as f:
        image = f.read()
    if image.count(APP_HOST_PLACE) != 1:
        raise Missing(f"{host} has no place for a program's name")
    out = os.path.join(BUILD, "dotnet", "hosted", f"{name}-{version}-{system}")
    with _Lock("hosted"):
        stamp = os.path.join(out, name)
        if not os.path.exists(stamp) or os.path.getmtime(stamp) < os.path.getmtime(app(name)):
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(source, out)
            with open(stamp, "wb") as f:
                f.write(image.replace(APP_HOST_PLACE, f"{name}.dll".encode().ljust(len(APP_HOST_PLACE), b"\0")))
            os.chmod(stamp, 0o755)
    return out


@functools.lru_cache(None)
def aspnet_root(version):
    """The same root with ASP.NET Core of this version added."""
    out = root(version)
    source = pack("microsoft.aspnetcore.app.runtime.linux-x64", version)
    folder = os.path.join(out, "shared", "Microsoft.AspNetCore.App")
    with _Lock("runtimes"):
        if not os.path.isdir(os.path.join(folder, version)):
            (managed,) = glob.glob(os.path.join(source, "runtimes", "linux-x64", "lib", "net*"))
            # The host looks for a folder with the version's name, so it appears complete or not at all.
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(managed, os.path.join(folder, ".partial"))
            os.rename(os.path.join(folder, ".partial"), os.path.join(folder, version))
    return out


@functools.lru_cache(None)
def root_of_a_future_version(version, claimed):
    """The root of a version whose runtime says that it is of another one, as long as a text: no agent can know it."""
    source, out = root(version), os.path.join(BUILD, "runtimes", f"{version}-as-{claimed}")
    with _Lock("runtimes"):
        if os.path.exists(os.path.join(out, ".complete")):
            return out
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(source, out, copy_function=os.link, ignore=shutil.ignore_patterns("libcoreclr.so", ".complete"))
        path = os.path.join("shared", "Microsoft.NETCore.App", version, "libcoreclr.so")
        with open(os.path.join(source, path), "rb") as original:
            image = original.read()
        mark, wanted = (b"@(#)Version " + text.encode() for text in (version.split(".")[0], claimed))
        if len(mark) != len(wanted) or mark + b"." not in image:
            raise Missing(f"{path} of {version} does not say its version where it is looked for")
        with open(os.path.join(out, path), "wb") as changed:
            changed.write(image.replace(mark + b".", wanted + b"."))
        open(os.path.join(out, ".complete"), "w").close()
    return out


@functools.lru_cache(None)
def app(name):
    """Path of the compiled NAME.dll (tests/apps/NAME); built again when a source of any C# program is newer."""
    apps = os.path.join(SOURCE, "tests", "apps")
    sources = [p for p in glob.glob(os.path.join(apps, "*", "*.cs*"))]
    artifacts = os.path.join(BUILD, "dotnet")
    out = os.path.join(artifacts, "bin", name, "release", f"{name}.dll")
    with _Lock("workload"):
        if not os.path.exists(out) or os.path.getmtime(out) < max(map(os.path.getmtime, sources)):
            _run([dotnet(), "build", os.path.join(apps, name, f"{name}.csproj"), "-c", "Release", "--nologo",
                  "--artifacts-path", artifacts], f"build of tests/apps/{name}")
            os.utime(out)
    return out


def workload():
    return app("workload")


@functools.lru_cache(None)
def runtime_async_app(version, name="runtime_async"):
    """Path of tests/apps/NAME, compiled so that the runtime makes its async methods: the SDK's compiler can, its targets can't yet."""
    source = os.path.join(SOURCE, "tests", "apps", name, "Program.cs")
    framework = os.path.join(root(version), "shared", "Microsoft.NETCore.App", version)
    compilers = sorted(glob.glob(os.path.join(os.path.dirname(dotnet()), "sdk", "*", "Roslyn", "bincore", "csc.dll")))
    if not compilers:
        raise Missing("the .NET SDK has no csc.dll")
    folder = os.path.join(BUILD, "dotnet", "bin", "runtime_async", version)
    out = os.path.join(folder, f"{name}.dll")
    with _Lock("runtime_async"):
        if not os.path.exists(out) or os.path.getmtime(out) < os.path.getmtime(source):
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, f"{name}.runtimeconfig.json"), "w") as f:
                json.dump({"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": version}}}, f)
            references = [f"-r:{path}" for path in glob.glob(os.path.join(framework, "*.dll"))]
            _run([dotnet(), "exec", compilers[-1], "-nologo", "-noconfig", "-nostdlib", "-optimize+", "-debug:portable",
                  "-nullable:enable", "-langversion:preview", "-features:runtime-async=on", *references, f"-out:{out}", source],
                 f"build of tests/apps/{name}, with runtime async")
            os.utime(out)
    return out


@functools.lru_cache(None)
def installed_version():
    """Version of the runtime that a program with RollForward=LatestMajor gets, such as 10.0.12."""
    text = subprocess.run([dotnet(), "--list-runtimes"], capture_output=True, text=True, timeout=300).stdout
    versions = [line.split()[1] for line in text.splitlines() if line.startswith("Microsoft.NETCore.App ")]
    if not versions:
        raise Missing("`dotnet --list-runtimes` names no Microsoft.NETCore.App")
    return max(versions, key=lambda v: tuple(int(x) if x.isdigit() else 0 for x in v.replace("-", ".").split(".")))


def number(version):
    return installed_version() if version == INSTALLED else version


def target_framework(version):
    """The framework to compile a program for that is to run on this version, such as net9.0: an SDK compiles for its own version and older ones."""
    sdk = subprocess.run([dotnet(), "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    return f"net{min(int(number(version).split('.')[0]), int(sdk.split('.')[0]))}.0"


def jitdump_is_broken(version):
    """.NET 10 up to 10.0.12 closes its jitdump at the first stub block: 33,281 bytes, two records (dotnet/runtime#122274)."""
    parts = number(version).split(".")
    return parts[0] == "10" and int(parts[2].split("-")[0]) <= 12


def writes_map_in_blocks(version):
    """.NET 11 writes its perf map 4 KiB at a time, when a block is full."""
    return int(number(version).split(".")[0]) >= 11


def command(version, *arguments, program="workload"):
    """(command line, environment additions) that run the workload, or another program of tests/apps, on a runtime version."""
    if version == INSTALLED:
        return [dotnet(), app(program), *arguments], {}
    base = aspnet_root(version) if program == "web" else root(version)
    return [os.path.join(base, "dotnet"), app(program), *arguments], {"DOTNET_ROOT": base}


if __name__ == "__main__":
    print(workload())
    for v in PACKED_VERSIONS:
        print(root(v))
