"""The workload on runtimes for musl, in a folder that looks like an Alpine container (tools/musl_root): its own root, pid and mount namespace."""
import functools
import os
import subprocess

import harness
import runtimes

# The changes that musl makes in the runtime differ between 8 and 10; all of them in the matrix.
SELECTED = runtimes.MUSL_VERSIONS if runtimes.MATRIX else runtimes.MUSL_VERSIONS[-2:-1]


@functools.lru_cache(None)
def root(version):
    """The folder, with this runtime in it. It is made once: a minute of a compiler's time."""
    done = subprocess.run([os.path.join(runtimes.SOURCE, "tools", "musl_root"), version], capture_output=True, text=True)
    if done.returncode:
        raise runtimes.Missing(done.stderr.strip().removeprefix("error: ")[-800:])
    return done.stdout.strip()


def libc(version):
    return os.path.join(root(version), "lib", "ld-musl-x86_64.so.1")


def workload(version, mode, *arguments, env=None):
    """As harness.workload does, in there."""
    env = {"HOME": "/tmp", "DOTNET_ROOT": f"/dotnet-{version}", "DOTNET_ROLL_FORWARD": "LatestMajor",
           "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1", **(env or {})}
    if mode == "gc":
        env["DOTNET_GCgen0size"] = "400000"
    script = 'mount -t proc proc /proc; exec env -i "$@"'
    command = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "chroot", root(version), "/bin/sh", "-ec", script, "sh",
               *(f"{name}={value}" for name, value in env.items()), "/app/workload", mode, *map(str, arguments)]
    target = harness.Target(command)
    target.host_pid = harness.Target._only_child(target.process.pid)
    return target
