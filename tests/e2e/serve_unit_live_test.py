#!/usr/bin/env python3
"""clrsampler serve as the systemd unit runs it: another user, the unit's capabilities and system calls and no more, file systems read-only. It sees the
pauses and names of a root's .NET process, and each capability is needed."""
import collections
import os
import re
import shutil
import signal
import subprocess
import tempfile

import harness
import runtimes
import stack_truth
from service import Manager, Service
from watcher import truth_of

UNIT = os.path.join(runtimes.SOURCE, "tools", "packaging", "clrsampler.service")

# Runs a command below a filter as systemd makes one of SystemCallFilter=: everything else fails with EPERM.
FILTERED = """
import ctypes, os, sys
seccomp = ctypes.CDLL("libseccomp.so.2")
seccomp.seccomp_init.restype = ctypes.c_void_p
context = ctypes.c_void_p(seccomp.seccomp_init(0x00050001))
for name in sys.argv[1].split(","):
    number = seccomp.seccomp_syscall_resolve_name(name.encode())
    if number >= 0:
        seccomp.seccomp_rule_add(context, 0x7fff0000, number, 0)
if seccomp.seccomp_load(context) != 0:
    sys.exit("the filter could not be loaded")
os.execv(sys.argv[2], sys.argv[2:])
"""


def system_calls(setting):
    """The names of SystemCallFilter=, its groups written out."""
    names = set()
    for word in setting.split():
        if not word.startswith("@"):
            names.add(word)
            continue
        said = subprocess.run(["systemd-analyze", "syscall-filter", word], check=True, capture_output=True, text=True).stdout
        for line in said.splitlines()[1:]:
            inner = line.strip()
            if inner and not inner.startswith("#"):
                names |= system_calls(inner) if inner.startswith("@") else {inner}
    return names


def unit_settings(path):
    """key -> value, the last one"""
    with open(path, encoding="utf-8") as f:
        return dict(re.findall(r"^(\w+)=(.*)$", f.read(), re.M))


def as_unit(capabilities, state):
    """A command line's beginning: what the unit says of user, capabilities and files, in the words of mount and setpriv. `state`: the
    folder that stays writable. It and the program's are where they were, whatever the unit hides."""
    words = ",".join("+" + c.lower().removeprefix("cap_") for c in capabilities)
    script = """
        state=$1 program=$2; shift 2
        mount --make-rprivate /
        exec 3<"$state" 4<"$program"
        mount -t tmpfs none /tmp  # PrivateTmp=
        for home in /home /root /run/user; do  # ProtectHome=yes
            [ ! -d $home ] || mount -t tmpfs -o mode=000 none $home
        done
        mkdir -p "$state" "$program"
        mount --no-canonicalize --bind /proc/self/fd/3 "$state"  # the one that is covered
        mount --no-canonicalize --bind /proc/self/fd/4 "$program"
        exec 3<&- 4<&-
        mount -t proc -o hidepid=invisible proc /proc  # ProtectProc=
        mount -o remount,bind,ro /
        mount -o remount,bind,ro /sys
        mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys
        mount --bind /dev/null /proc/kallsyms  # ProtectKernelTunables=
        exec "$@" """
    return ["unshare", "--mount", "sh", "-ec", script, "sh", state, os.path.dirname(harness.AGENT), *harness.AS_NOBODY,
            "--no-new-privs", f"--bounding-set=-all,{words}", f"--inh-caps=-all,{words}", f"--ambient-caps=-all,{words}"]


class ServeUnitTest(harness.LiveTest):
    NEEDS = ("dotnet", "setpriv")

    def setUp(self):
        self.settings = unit_settings(UNIT)
        if shutil.which("systemd-analyze") is None:
            raise harness.Missing("systemd-analyze is not installed")
        with open(UNIT, encoding="utf-8") as f:
            lists = re.findall(r"^SystemCallFilter=(.*)$", f.read(), re.M)
        calls = set()
        for words in lists:
            if words.startswith("~"):
                calls -= system_calls(words[1:])
            else:
                calls |= system_calls(words)
        self.assertNotIn("mount", calls)
        # The system's python3: another may lie in somebody's home.
        self.filtered = ["/usr/bin/python3", "-c", FILTERED, ",".join(sorted(calls))]
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="clrsampler-test-"))
        os.chown(self.folder, harness.NOBODY, harness.NOBODY)

    def serve(self, capabilities, *options, **more):
        return Service("--frequency", 199, *options, folder=self.folder, agent=[*as_unit(capabilities, self.folder), *self.filtered, harness.AGENT], **more)

    def without(self, *missing):
        return [c for c in self.settings["AmbientCapabilities"].split() if c not in missing]

    def check_names(self, service, target):
        """At least 95 % of the managed and of the kernel's frames have one."""
        named, unnamed = self.named_and_unnamed(service, target)
        for kind in ("jit", "kernel"):
            frames, faults = (round(weight / harness.period_ns(199)) for weight in (named[kind] + unnamed[kind], unnamed[kind]))
            self.assertGreater(named[kind], 0, (kind, named, unnamed))
            self.assertLessEqual(faults, stack_truth.allowed_faults(frames, 0.95), (kind, named, unnamed))

    def named_and_unnamed(self, service, target):
        """kind -> weight of the frames with a name, and of those that say why they have none"""
        profile = service.json("/api/profile", pid=target.host_pid, format="json")
        kinds, strings, frames, nodes = profile["frame_kinds"], profile["strings"], profile["frames"], profile["nodes"]
        counts = collections.Counter(), collections.Counter()
        samples = profile["samples"]
        for node, weight in zip(samples["stack"], samples.get("weight") or [1] * len(samples["stack"])):
            while node:
                frame = nodes["frame"][node]
                name, kind = strings[frames["name"][frame]], kinds[frames["kind"][frame]]
                counts[re.match(r"\[(jit|r2r|native|kernel|memory)\b", name) is not None][kind] += weight
                node = nodes["parent"][node]
        return counts

    def test_sees_pauses_names_and_the_kernel_of_a_process_of_root(self):
        granted = self.settings["AmbientCapabilities"].split()
        self.assertEqual(granted, self.settings["CapabilityBoundingSet"].split())
        self.assertNotIn("CAP_SYS_ADMIN", granted)
        if tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups())) < (6, 6):
            self.unavailable("before Linux 6.6 probes take CAP_SYS_ADMIN")
        manager = Manager(self.folder)
        os.chmod(manager.path, 0o777)
        with self.serve(granted, env=manager.env) as service, harness.workload(runtimes.INSTALLED, "pauses", "--seconds", 120) as target:
            manager.wait_for("READY=1")
            with open(f"/proc/{service.process.pid}/status", encoding="ascii") as f:
                status = f.read()
            effective = int(re.search(r"CapEff:\s*(\w+)", status)[1], 16)
            self.assertRegex(status, r"Seccomp:\s*2\b")
            self.assertEqual(bin(effective).count("1"), len(granted))
            process = f"{target.comm()}-{target.host_pid}"
            service.wait_for_windows(2)  # it has been met, and its probes are there
            target.signal(signal.SIGHUP)
            truth_of(target)
            service.wait_for_windows(1)
            self.assertGreater(service.sum("clrsampler_gc_suspension_duration_seconds_count", process=process), 0, service.said())
            self.check_names(service, target)
            self.assertEqual(service.stop(), 0, service.said())
            self.assertNotIn("Permission denied", service.said())
            self.assertNotIn("Operation not permitted", service.said())

    def test_each_is_needed(self):
        for missing in ("CAP_BPF", "CAP_PERFMON"):
            with self.subTest(missing=missing):
                done = subprocess.run([*as_unit(self.without(missing), self.folder), harness.AGENT, "serve", "--no-history",
                                       "--listen", "none"], capture_output=True, text=True, timeout=300)
                self.assertEqual(done.returncode, 1, done)
                self.assertIn(missing, done.stderr)
        # capabilities_live_test.py has the proof of CAP_DAC_READ_SEARCH and CAP_CHECKPOINT_RESTORE.
        with self.serve(self.without("CAP_SYS_PTRACE")) as service, harness.workload(runtimes.INSTALLED, "json", "--seconds", 300) as target:
            service.wait_for_windows(2)  # it has been met
            target.use_cpu(2)  # 400 samples, each with compiled methods in its stack
            service.wait_for_windows(2)
            named, unnamed = self.named_and_unnamed(service, target)
            self.assertEqual(named["jit"], 0, named)
            self.assertGreater(unnamed["jit"], 0)

    def test_systemd_accepts_the_unit(self):
        # The program that it starts is where it would be installed.
        with open(UNIT, encoding="utf-8") as f:
            text = f.read().replace("ExecStart=clrsampler ", f"ExecStart={harness.AGENT} ")
        copy = os.path.join(self.folder, "clrsampler.service")
        with open(copy, "w", encoding="utf-8") as f:
            f.write(text)
        verified = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", copy], capture_output=True, text=True, timeout=300)
        self.assertEqual((verified.returncode, verified.stderr), (0, ""))
        # The threshold is one of 100, which is a service with all rights.
        rated = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", copy], capture_output=True, text=True, timeout=300)
        self.assertEqual(rated.returncode, 0, rated.stdout[-600:] + rated.stderr)


if __name__ == "__main__":
    harness.main()
