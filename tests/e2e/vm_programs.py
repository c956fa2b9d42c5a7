"""A .NET program for virtual machines of either architecture: what must be put into the machine, and how it is started.

x86_64 gets a runtime of build/runtimes. For arm64 no feed has the runtime pack, so a self-contained single-file program from npm gives
its runtime (10.0.9, statically linked, with a trimmed class library that is IL only): its own assembly is replaced. Made once, kept.
"""
import glob
import os
import shutil
import struct
import subprocess
import tarfile

import runtimes
from runtimes import Missing

ARM64_PROGRAM = "@azure/mcp-linux-arm64@2.0.5"
ARM64_ASSEMBLY = "azmcp.dll"
ARM64_REFERENCES = ("System.Private.CoreLib.dll", "System.Console.dll", "System.Runtime.dll")
ARM64_SUITE = "bookworm"  # of its shared libraries
X64_VERSION = "10.0.14"
FOLDER = os.path.join(runtimes.BUILD, "vm")

# SHA-256 of ".net core bundle"; the manifest's offset is in the 8 bytes before it.
SIGNATURE = bytes.fromhex("8b1202b96a612038727b930214d7a03213f5b9e6efae3318ee3b2dce24b36aae")


class Bundle:
    """A single-file program (bundle format 6, uncompressed)."""

    def __init__(self, data):
        self.data = bytearray(data)
        at, = struct.unpack_from("<q", data, data.index(SIGNATURE) - 8)
        major, _, count = struct.unpack_from("<IIi", data, at)
        if major != 6:
            raise Missing(f"the bundle's format is {major}, not 6")
        _, at = self._text(at + 12)  # the bundle's id
        at += 40                     # places of deps.json and runtimeconfig.json, flags
        self.entries = {}            # name -> (place of the entry, offset, size)
        for _ in range(count):
            offset, size, compressed = struct.unpack_from("<qqq", data, at)
            name, end = self._text(at + 25)  # behind the file's type, one byte
            if compressed:
                raise Missing("the bundle is compressed")
            self.entries[name] = at, offset, size
            at = end

    def _text(self, at):
        length = shift = 0
        while True:
            byte = self.data[at]
            at += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return bytes(self.data[at:at + length]).decode(), at + length

    def file(self, name):
        _, offset, size = self.entries[name]
        return bytes(self.data[offset:offset + size])

    def replace(self, name, content):
        """The manifest keeps its length: the file is appended, and its entry's offset and size are written over."""
        at, _, _ = self.entries[name]
        self.data += bytes(-len(self.data) % 4096)
        struct.pack_into("<qqq", self.data, at, len(self.data), len(content), 0)
        self.data += content


def _compile(source, references, out):
    dotnet = runtimes.dotnet()
    compilers = sorted(glob.glob(os.path.join(os.path.dirname(dotnet), "sdk", "*", "Roslyn", "bincore", "csc.dll")))
    if not compilers:
        raise Missing("the .NET SDK has no csc.dll")
    runtimes._run([dotnet, compilers[-1], "-noconfig", "-nostdlib", "-nologo", "-optimize+", "-debug-", *(f"-r:{r}" for r in references),
                   f"-out:{out}", source], f"compilation of {source}")


def _x86_64(source, folder):
    root = runtimes.root(X64_VERSION)
    framework = os.path.join(root, "shared", "Microsoft.NETCore.App", X64_VERSION)
    _compile(source, [os.path.join(framework, name) for name in ARM64_REFERENCES], os.path.join(folder, "app.dll"))
    with open(os.path.join(folder, "app.runtimeconfig.json"), "w") as f:
        f.write('{"runtimeOptions":{"framework":{"name":"Microsoft.NETCore.App","version":"%s"}}}\n' % X64_VERSION)


def _x86_64_parts(folder):
    root = runtimes.root(X64_VERSION)
    framework = os.path.join("shared", "Microsoft.NETCore.App", X64_VERSION)
    # Of files, not of folders, the machine gets the shared libraries they need.
    library = os.path.join(root, framework, "libcoreclr.so")
    return [(os.path.join(root, "dotnet"), "/app/dotnet"), (os.path.join(root, "host"), "/app/host"),
            (os.path.join(root, framework), os.path.join("/app", framework)), (library, "/opt/libcoreclr.so"),
            (os.path.join(folder, "app.dll"), "/app/app.dll"),
            (os.path.join(folder, "app.runtimeconfig.json"), "/app/app.runtimeconfig.json")]


def arm64_host():
    """The path of the arm64 program as its package has it."""
    if not shutil.which("npm"):
        raise Missing("no `npm` on PATH, which fetches an arm64 runtime")
    folder = os.path.join(FOLDER, "arm64-host")
    path = os.path.join(folder, "program")
    with runtimes._Lock("arm64-host"):
        if not os.path.exists(path):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            done = subprocess.run(["npm", "pack", "--silent", ARM64_PROGRAM], cwd=folder, capture_output=True, text=True, timeout=600)
            packed = glob.glob(os.path.join(folder, "*.tgz"))
            if done.returncode or len(packed) != 1:
                raise Missing(f"npm pack {ARM64_PROGRAM} failed: {done.stderr.strip()[-400:]}")
            with tarfile.open(packed[0]) as archive, open(path + ".partial", "wb") as f:
                shutil.copyfileobj(archive.extractfile("package/dist/azmcp"), f)
            os.unlink(packed[0])
            os.rename(path + ".partial", path)
    return path


def _aarch64(source, folder):
    with open(arm64_host(), "rb") as f:
        bundle = Bundle(f.read())
    for name in ARM64_REFERENCES:
        with open(os.path.join(folder, name), "wb") as f:
            f.write(bundle.file(name))
    assembly = os.path.join(folder, ARM64_ASSEMBLY)
    _compile(source, [os.path.join(folder, name) for name in ARM64_REFERENCES], assembly)
    with open(assembly, "rb") as f:
        bundle.replace(ARM64_ASSEMBLY, f.read())
    with open(os.path.join(folder, "app"), "wb") as f:
        f.write(bundle.data)
    os.chmod(f.name, 0o755)
    libraries = os.path.join(folder, "libraries")
    runtimes._run([os.path.join(runtimes.SOURCE, "tools", "debian_packages"), ARM64_SUITE, "aarch64", libraries, "libc6", "libgcc-s1",
                   "libstdc++6"], "unpacking of arm64 libraries")


def _aarch64_parts(folder):
    libraries = os.path.join(folder, "libraries")
    return [(os.path.join(folder, "app"), "/app/app"), (os.path.join(libraries, "lib"), "/lib"),
            (os.path.join(libraries, "usr", "lib", "aarch64-linux-gnu"), "/usr/lib/aarch64-linux-gnu")]


def program(name, arch):
    """(arguments for run_vm, words that start tests/apps/NAME/*.cs in the machine)"""
    (source,) = glob.glob(os.path.join(runtimes.SOURCE, "tests", "apps", name, "*.cs"))
    folder = os.path.join(FOLDER, f"{name}-{arch}")
    make, parts, command = {"x86_64": (_x86_64, _x86_64_parts, ["/app/dotnet", "/app/app.dll"]),
                            "aarch64": (_aarch64, _aarch64_parts, ["/app/app"])}[arch]
    with runtimes._Lock("vm"):
        stamp = os.path.join(folder, ".complete")
        if not os.path.exists(stamp) or os.path.getmtime(stamp) < os.path.getmtime(source):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            make(source, folder)
            open(stamp, "w").close()
    return [argument for path, target in parts(folder) for argument in ("--add", f"{path}:{target}")], command
