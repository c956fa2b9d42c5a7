"""A .NET program for arm64 under qemu-user, on a machine of another kind."""
import os
import shutil

import runtimes
import vm_programs

EMULATOR = "qemu-aarch64-static"


def command(name, version, *arguments):
    """(command line, environment additions) that run tests/apps/NAME."""
    emulator = shutil.which(EMULATOR)
    if not emulator:
        raise runtimes.Missing(f"no `{EMULATOR}` on PATH")
    program = os.path.join(runtimes.with_app_host(name, version, "linux-arm64"), name)
    # Else it reserves 256 GiB for its heap, all of which the emulator keeps books of.
    environment = {"DOTNET_ROOT": runtimes.root(version, "linux-arm64"), "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",
                   "DOTNET_gcHeapHardLimit": "0x8000000"}
    return [emulator, "-L", vm_programs.arm64_libraries(), program, *arguments], environment
