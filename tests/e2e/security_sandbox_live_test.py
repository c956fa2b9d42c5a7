#!/usr/bin/env python3
"""The powers that the agent and its fetching process still have when somebody has taken them over.

The test tries them from inside, by system calls that it makes the processes call.
"""
import errno
import os
import platform
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import time

import harness
import symbol_servers
from injected_call import Injector
from service import Service
from symbol_servers import Server

NOBODY = 65534
SPINNER = os.environ.get("SPINNER", os.path.join(os.path.dirname(harness.MINIJIT), "spinner", "spinner"))
FIVE = {"bpf": 39, "perfmon": 38, "sys_ptrace": 19, "dac_read_search": 2, "checkpoint_restore": 40}
AT_FDCWD, O_RDONLY, O_WRONLY, O_RDWR, O_CREAT = -100, 0, 1, 2, 0o100
AF_UNIX, AF_INET, AF_PACKET, SOCK_STREAM, SOCK_RAW = 1, 2, 17, 1, 3
CLONE_NEWUSER, PTRACE_ATTACH = 0x10000000, 16

# System calls that nobody's sandbox allows.
FORBIDDEN = [
    ("execve", "/bin/true", 0, 0),
    ("fork",),
    ("ptrace", PTRACE_ATTACH, 1, 0, 0),
    ("process_vm_writev", 1, 0, 0, 0, 0, 0),
    ("mount", "none", "/mnt", "tmpfs", 0, 0),
    ("unshare", CLONE_NEWUSER),
    ("init_module", 0, 0, 0),
    ("socket", AF_INET, SOCK_RAW, 1),
    ("socket", AF_PACKET, SOCK_RAW, 0),
    ("setuid", 0),
    ("setresuid", 0, 0, 0),
    ("setfsuid", 0),
    ("kill", 1, 0),
    ("mmap", 0, 4096, 7, 0x22, -1, 0),  # code that can be written
]


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return dict(re.findall(r"^(\w+):[ \t]*(.*)$", f.read(), re.M))


def bits(text):
    return {bit for bit in range(64) if int(text, 16) >> bit & 1}


class SandboxLiveTest(harness.LiveTest):
    @classmethod
    def check_needs(cls):
        super().check_needs()
        if platform.machine() != "x86_64":
            raise harness.Missing("system calls are injected on x86-64 only")

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="clrsampler-test-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def start(self, *arguments, **more):
        process = subprocess.Popen([harness.AGENT, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **more)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def wait_for_filter(self, pid):
        end = time.monotonic() + 60
        while (status := status_of(pid))["Seccomp"] != "2":
            self.assertLess(time.monotonic(), end, "no filter of system calls")
            time.sleep(0.02)
        return status

    def check_refused(self, process, *calls):
        """They fail for lack of rights, in whatever way the kernel says it."""
        for call in calls:
            with self.subTest(call=call):
                self.assertIn(process.call(*call), (-errno.EPERM, -errno.EACCES))

    def check_allowed(self, process, *calls):
        for call in calls:
            with self.subTest(call=call):
                result = process.call(*call)
                self.assertGreaterEqual(result, 0)
                process.call("close", result)

    def check_agent(self, status):
        self.assertEqual(bits(status["CapEff"]), set(FIVE.values()))
        self.assertEqual(bits(status["CapPrm"]), set(FIVE.values()))
        self.assertLessEqual(bits(status["CapBnd"]), set(FIVE.values()))
        self.assertEqual((bits(status["CapInh"]), bits(status["CapAmb"]), status["NoNewPrivs"]), (set(), set(), "1"))

    def check_writes_nothing_of_root(self, process):
        victim = os.path.join(self.folder, "victim")
        with open(victim, "w", encoding="ascii") as f:
            f.write("root's")
        self.check_refused(process, ("openat", AT_FDCWD, "/etc/passwd", O_WRONLY), ("openat", AT_FDCWD, victim, O_WRONLY),
                           ("openat", AT_FDCWD, "/etc/cron.d/clrsampler-test", O_WRONLY | O_CREAT, 0o644),
                           ("openat", AT_FDCWD, f"/proc/{os.getpid()}/root/etc/passwd", O_RDWR),
                           ("openat", AT_FDCWD, f"/proc/{os.getpid()}/mem", O_RDWR),
                           ("openat", AT_FDCWD, "/proc/sys/kernel/core_pattern", O_WRONLY), ("unlink", victim))
        self.assertFalse(os.path.exists("/etc/cron.d/clrsampler-test"))


class AgentTest(SandboxLiveTest):
    def test_record_keeps_five_capabilities_and_writes_nothing_of_root(self):
        output = os.path.join(self.folder, "out.folded")
        agent = self.start("--duration", "10m", "-o", output)
        self.check_agent(self.wait_for_filter(agent.pid))
        with Injector(agent.pid) as process:
            self.check_refused(process, *FORBIDDEN, ("socket", AF_INET, SOCK_STREAM, 0))
            self.check_writes_nothing_of_root(process)
            self.check_allowed(process, ("openat", AT_FDCWD, f"/proc/{os.getpid()}/maps", O_RDONLY),
                               ("openat", AT_FDCWD, f"/proc/{os.getpid()}/mem", O_RDONLY), ("openat", AT_FDCWD, "/etc/shadow", O_RDONLY))
        subprocess.run([SPINNER, "0.5"], check=True)  # there is something to record
        agent.send_signal(signal.SIGINT)
        said = agent.communicate(timeout=180)[1].decode()
        self.assertEqual(agent.returncode, 0, said)
        self.assertGreater(os.path.getsize(output), 0)

    def test_other_commands(self):
        spinner = subprocess.Popen([SPINNER, "120"])
        self.addCleanup(spinner.wait)
        self.addCleanup(spinner.kill)
        agent = self.start("top", "--once", "--interval", "30s")
        self.check_agent(self.wait_for_filter(agent.pid))
        with Injector(agent.pid) as process:
            self.check_refused(process, *FORBIDDEN)
            self.check_writes_nothing_of_root(process)
        # `stacks` uses ptrace; its threads are there.
        done = subprocess.run([harness.AGENT, "stacks", "--pid", str(spinner.pid)], capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("spin", done.stdout)

    def test_a_command_has_the_rights_of_the_caller(self):
        script = "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|Seccomp_filters)' /proc/self/status; sleep 0.3"
        plain = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
        output = os.path.join(self.folder, "out.folded")
        done = subprocess.run([harness.AGENT, "-o", output, "--", "sh", "-c", script], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, plain)
        # A setuid program in it still works.
        if shutil.which("su"):
            done = subprocess.run([harness.AGENT, "-o", output, "--", *harness.AS_NOBODY, "grep", "NoNewPrivs", "/proc/self/status"],
                                  capture_output=True, text=True, timeout=300)
            self.assertRegex(done.stdout, r"NoNewPrivs:\s*0")

    def test_serve_gives_its_folder_away_and_lives_through_a_reload(self):
        state = os.path.join(self.folder, "state")
        configuration = os.path.join(self.folder, "serve.conf")
        with open(configuration, "w", encoding="ascii") as f:
            f.write("frequency = 49\n")
        os.chmod(configuration, 0o600)
        os.chmod(self.folder, 0o700)
        with Service("--config", configuration, "--trigger", "pause>100s", folder=state) as service:
            pid = service.process.pid
            self.check_agent(self.wait_for_filter(pid))
            owner = os.stat(state).st_uid
            self.assertNotEqual(owner, 0)
            self.assertIn(str(owner), status_of(pid)["Uid"].split())
            with Injector(pid) as process:
                self.check_refused(process, *FORBIDDEN)
                self.check_writes_nothing_of_root(process)
                self.check_allowed(process, ("socket", AF_INET, SOCK_STREAM, 0))
            service.wait_for_windows(1)
            service.process.send_signal(signal.SIGHUP)
            service.wait_for_log("the configuration was read again")
            service.wait_for_log("sampling this host", times=2)
            service.wait_for_log("listening on", times=2)
            found = re.findall(r"listening on http://(\S+):(\d+)/", service.said())[-1]
            service.address = (found[0], int(found[1]))
            service.wait_for_windows(1)
            self.assertEqual({os.stat(os.path.join(state, name)).st_uid for name in os.listdir(state)}, {owner})
            self.assertEqual(service.stop(), 0, service.said())
            for word in ("Permission denied", "not permitted", "root's files"):
                self.assertNotIn(word, service.said())

    def test_a_folder_of_others_is_not_given_away(self):
        os.chmod(self.folder, 0o755)
        with Service(folder=self.folder) as service:
            self.wait_for_filter(service.process.pid)
            self.assertEqual(os.stat(self.folder).st_uid, 0)
            self.assertIn("keeps the right to write root's files", service.said())
            service.wait_for_windows(1)


class FileWorkerTest(SandboxLiveTest):
    @staticmethod
    def children(pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(child) for child in f.read().split()]

    def test_reads_what_targets_see_and_does_nothing_else(self):
        agent = self.start("--duration", "10m", "-o", os.path.join(self.folder, "out.folded"))
        self.wait_for_filter(agent.pid)
        nursery = next(pid for pid in self.children(agent.pid) if status_of(pid)["Name"] == "clrsampler-file")
        (worker,) = self.children(nursery)
        for pid in (nursery, worker):
            status = self.wait_for_filter(pid)
            for kind in ("CapEff", "CapPrm"):
                self.assertEqual(bits(status[kind]), {FIVE[name] for name in ("sys_ptrace", "dac_read_search", "checkpoint_restore")}, kind)
            self.assertEqual((bits(status["CapInh"]), bits(status["CapAmb"]), status["NoNewPrivs"]), (set(), set(), "1"))
            self.assertNotEqual(status["Uid"].split()[1], "0")
        with Injector(worker) as process:
            self.check_refused(process, *[call for call in FORBIDDEN if call != ("fork",)], ("socket", AF_INET, SOCK_STREAM, 0), ("bpf", 0, 0, 0),
                               ("kill", agent.pid, 0), ("unlink", os.path.join(self.folder, "out.folded")))
            self.check_writes_nothing_of_root(process)
            self.check_allowed(process, ("openat", AT_FDCWD, f"/proc/{os.getpid()}/maps", O_RDONLY))
        agent.kill()
        agent.wait()
        end = time.monotonic() + 60
        while harness.is_running(nursery) or harness.is_running(worker):
            self.assertLess(time.monotonic(), end, "they go on without the agent")
            time.sleep(0.02)


class FetcherTest(SandboxLiveTest):
    def test_is_nobody_and_reaches_nothing(self):
        cache = os.path.join(self.folder, "cache")
        identity = symbol_servers.build_id(os.path.join(os.path.dirname(SPINNER), "libspin.so"))
        with Server(behave=lambda handler, path: server.hang(handler, path)) as server:
            agent = self.start("--duration", "10m", "--symbol-cache", cache, "--symbol-server", "ssqp+" + server.url, "-o",
                               os.path.join(self.folder, "out"), "--", SPINNER, "300",
                               env={**os.environ, "no_proxy": "127.0.0.1"})
            end = time.monotonic() + 60
            while not any(identity in path for path in server.requests):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)
            with open(f"/proc/{agent.pid}/task/{agent.pid}/children", encoding="ascii") as f:
                children = [int(pid) for pid in f.read().split()]
            fetcher = next(pid for pid in children if status_of(pid)["Name"] == "clrsampler-get")
            command = next(pid for pid in children if status_of(pid)["Name"] == "spinner")
            self.addCleanup(os.kill, command, signal.SIGKILL)  # which goes on when the agent is killed, and holds its pipes
            status = self.wait_for_filter(fetcher)
            self.assertEqual(status["Uid"].split(), [str(NOBODY)] * 4)
            self.assertEqual(status["Gid"].split(), [str(NOBODY)] * 4)
            self.assertEqual(status["Groups"].strip(), "")
            for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                self.assertEqual(bits(status[kind]), set(), kind)
            self.assertEqual(status["NoNewPrivs"], "1")
            # Not dumpable: others of its user can't look into it.
            self.assertEqual(os.stat(f"/proc/{fetcher}/mem").st_uid, 0)
            looked = subprocess.run([*harness.AS_NOBODY, "cat", f"/proc/{fetcher}/maps"], capture_output=True, text=True, timeout=300)
            self.assertNotEqual(looked.returncode, 0, looked.stdout)
            readable = os.path.join(self.folder, "readable")
            with open(readable, "w", encoding="ascii") as f:
                f.write("anybody's, but not below what it needs")
            os.chmod(self.folder, 0o777)
            with Injector(fetcher) as process:
                self.check_refused(process, *FORBIDDEN, ("bpf", 0, 0, 0), ("kill", agent.pid, 0),
                                   ("openat", AT_FDCWD, readable, O_RDONLY), ("openat", AT_FDCWD, cache, O_RDONLY),
                                   ("openat", AT_FDCWD, f"/proc/{agent.pid}/status", O_RDONLY),
                                   ("openat", AT_FDCWD, os.path.join(self.folder, "made"), O_WRONLY | O_CREAT, 0o600),
                                   ("openat", AT_FDCWD, "/etc/passwd", O_WRONLY))
                self.check_allowed(process, ("openat", AT_FDCWD, "/etc/ssl", O_RDONLY), ("socket", AF_INET, SOCK_STREAM, 0))
            # It ends with the agent, however that ends, though no signal of the agent would reach it.
            agent.kill()
            agent.wait()
            end = time.monotonic() + 60
            while harness.is_running(fetcher):
                self.assertLess(time.monotonic(), end, "it goes on without the agent")
                time.sleep(0.02)

    def test_names_and_certificates_are_looked_up_in_it(self):
        if not shutil.which("openssl"):
            self.unavailable("openssl makes the certificate")
        key, certificate, bundle = (os.path.join(self.folder, name) for name in ("key.pem", "certificate.pem", "bundle.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate], check=True, capture_output=True)
        system = os.path.realpath("/etc/ssl/certs/ca-certificates.crt")
        if not os.path.exists(system):
            self.unavailable("no bundle of certificates in /etc/ssl/certs")
        shutil.copy(certificate, bundle)
        os.chmod(bundle, 0o644)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        library = os.path.join(os.path.dirname(SPINNER), "libspin.so")
        with open(os.path.join(os.path.dirname(SPINNER), "symbols", "libspin.so.dbg"), "rb") as f:
            debug = f.read()
        with Server({symbol_servers.debuginfod_path(symbol_servers.build_id(library)): debug}, tls=context) as server:
            command = [harness.AGENT, "--frequency", "499", "--symbol-cache", os.path.join(self.folder, "cache"), "--symbol-server", server.url,
                       "-o", os.path.join(self.folder, "out.folded"), "--", SPINNER, "3"]
            # The host's certificates in the eyes of this run are the server's.
            trusting = ["unshare", "--mount", "sh", "-ec", 'mount --make-rprivate /; mount --bind "$0" "$1"; shift; exec "$@"', bundle, system]
            for wrapper, named in ((trusting, True), ([], False)):
                shutil.rmtree(os.path.join(self.folder, "cache"), True)
                done = subprocess.run([*wrapper, *command], capture_output=True, text=True, timeout=300,
                                      env={**os.environ, "no_proxy": "localhost"})
                with open(os.path.join(self.folder, "out.folded"), encoding="utf-8") as f:
                    self.assertEqual("StirSlowly" in f.read(), named, done.stderr)


if __name__ == "__main__":
    harness.main()
