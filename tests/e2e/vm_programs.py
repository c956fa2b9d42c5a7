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


def command(name, arch):
    """Words that start tests/apps/NAME in the machine, with ENVIRONMENT."""
    return [f"{ROOT}/dotnet", f"/app/{name}/{name}.dll"] if arch == "x86_64" else [f"/app/{name}/{name}"]


def _arguments(added):
    return [argument for path, target in added for argument in ("--add", f"{path}:{target}")]


def library_parts():
    """Arguments for run_vm: what an arm64 program loads."""
    libraries = arm64_libraries()
    return _arguments([(os.path.join(libraries, "lib"), "/lib"),
                       (os.path.join(libraries, "usr", "lib", "aarch64-linux-gnu"), "/usr/lib/aarch64-linux-gnu")])


def parts(names, arch, version=None):
    """Arguments for run_vm: a runtime and programs of tests/apps."""
    version = version or VERSIONS[arch]
    framework = os.path.join("shared", "Microsoft.NETCore.App", version)
    if arch == "x86_64":
        root = runtimes.root(version)
        # The machine gets the shared libraries that files need, but not those that folders need.
        added = [(os.path.join(root, "dotnet"), f"{ROOT}/dotnet"), (os.path.join(root, framework, "libcoreclr.so"), "/opt/libcoreclr.so")]
        apps = [os.path.dirname(runtimes.app(name)) for name in names]
    else:
        root, added = runtimes.root(version, "linux-arm64"), []
        apps = [runtimes.with_app_host(name, version, "linux-arm64") for name in names]
    added += [(os.path.join(root, "host"), f"{ROOT}/host"), (os.path.join(root, framework), f"{ROOT}/{framework}")]
    added += [(app, f"/app/{name}") for app, name in zip(apps, names)]
    return (library_parts() if arch == "aarch64" else []) + _arguments(added)


if __name__ == "__main__":
    print(parts(["workload", "shapes"], "aarch64"))
