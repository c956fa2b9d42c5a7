"""A .NET program for virtual machines of either architecture: what must be put into the machine, and how it is started."""
import os

import runtimes

VERSIONS = {"x86_64": "10.0.14", "aarch64": "10.0.15"}
SUITE = "bookworm"  # of the shared libraries for arm64
ROOT = "/app/root"
ENVIRONMENT = f"DOTNET_ROOT={ROOT} DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1"


def arm64_libraries():
    """A folder with the shared libraries that an arm64 .NET needs, as it belongs below `/`."""
    folder = os.path.join(runtimes.BUILD, "vm", "arm64-libraries")
    with runtimes._Lock("vm"):
        if not os.path.isdir(os.path.join(folder, "lib")):
            runtimes._run([os.path.join(runtimes.SOURCE, "tools", "debian_packages"), SUITE, "aarch64", folder, "libc6", "libgcc-s1",
                           "libstdc++6"], "unpacking of arm64 libraries")
    return folder


def program(name, arch, version=None):
    """(arguments for run_vm, words that start tests/apps/NAME in the machine)"""
    version = version or VERSIONS[arch]
    framework = os.path.join("shared", "Microsoft.NETCore.App", version)
    if arch == "x86_64":
        root, app = runtimes.root(version), os.path.dirname(runtimes.app(name))
        # Of files, not of folders, the machine gets the shared libraries they need.
        parts = [(os.path.join(root, "dotnet"), f"{ROOT}/dotnet"), (os.path.join(root, framework, "libcoreclr.so"), "/opt/libcoreclr.so")]
        command = [f"{ROOT}/dotnet", f"/app/{name}/{name}.dll"]
    else:
        root, app = runtimes.root(version, "linux-arm64"), runtimes.with_app_host(name, version, "linux-arm64")
        libraries = arm64_libraries()
        parts = [(os.path.join(libraries, "lib"), "/lib"), (os.path.join(libraries, "usr", "lib", "aarch64-linux-gnu"), "/usr/lib/aarch64-linux-gnu")]
        command = [f"/app/{name}/{name}"]
    parts += [(os.path.join(root, "host"), f"{ROOT}/host"), (os.path.join(root, framework), f"{ROOT}/{framework}"), (app, f"/app/{name}")]
    return [argument for path, target in parts for argument in ("--add", f"{path}:{target}")], command
