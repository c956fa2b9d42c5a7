#!/usr/bin/env python3
"""Names of pods and containers from the node's container runtime: one that is well, ones that are not, and what a process claims besides."""
import contextlib
import os
import subprocess
import tempfile
import time

import harness
import otlp_check
import runtimes
from control_group import ControlGroup
from cri_server import CriServer, RawRuntime
from service import Service

ID = "0123456789abcdef" * 4
INNER = "fedcba9876543210" * 4
SHOP = ("prod", "shop-7d9f-x", "web", "registry:5000/shop/web:1.2")
NAMES = {"k8s.namespace.name": "prod", "k8s.pod.name": "shop-7d9f-x", "k8s.container.name": "web",
         "container.image.name": "registry:5000/shop/web", "container.image.tags": ["1.2"], "container.id": ID}
CLAIMS = {"OTEL_SERVICE_NAME": "shop", "POD_NAME": "pod-of-another", "POD_NAMESPACE": "kube-system",
          "OTEL_RESOURCE_ATTRIBUTES": "container.image.name=another"}


class ContainerNamesTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def setUp(self):
        self.python = harness.python_with("grpc")
        if self.python is None:
            self.unavailable("no Python here has grpc")
        self.folder = tempfile.TemporaryDirectory(prefix="clrsampler-test-")
        self.addCleanup(self.folder.cleanup)

    @contextlib.contextmanager
    def program(self, *components):
        """A .NET program in a container, which claims to be another one."""
        try:
            group = ControlGroup("kubepods.slice", *(components or (f"cri-containerd-{ID}.scope",)))
        except OSError as error:
            self.unavailable(f"no control group can be made: {error}")
        with group, harness.workload(runtimes.INSTALLED, "mix", "--seconds", 150, env=CLAIMS) as target:
            group.add(target.host_pid)
            yield target

    def recorded(self, target, socket, seconds=4):
        """The attributes of the process's resource, and what was said."""
        path = os.path.join(self.folder.name, f"{target.host_pid}.otlp")
        begin = time.monotonic()
        command = [harness.AGENT, "record", "--pid", str(target.host_pid), "--duration", f"{seconds}s", "-o", path, "--cri-socket", socket]
        done = subprocess.run(command, capture_output=True, text=True, timeout=150)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.seconds = time.monotonic() - begin
        with open(path, "rb") as file:
            checked = otlp_check.Checker(file.read())
        self.assertEqual(checked.findings, [])
        ((attributes, _),) = checked.profiles.resources
        return attributes, done.stderr

    def server(self, manner="good", containers=None):
        return CriServer(self.python, {ID: SHOP} if containers is None else containers, manner)

    def assert_named(self, attributes):
        self.assertEqual({key: attributes.get(key) for key in NAMES}, NAMES)
        self.assertEqual(attributes["service.name"], "shop", "what the node does not say is the process's own")

    def assert_claims(self, attributes):
        self.assertEqual((attributes["service.name"], attributes["k8s.pod.name"]), ("shop", "pod-of-another"))

    def test_the_runtime_names_a_container_and_is_asked_once(self):
        with self.program() as target, self.server() as runtime:
            attributes, said = self.recorded(target, runtime.socket)
        self.assert_named(attributes)
        self.assertNotIn("container runtime", said)
        self.assertEqual([call.split()[0] for call in runtime.calls], ["ListContainers", "ListPodSandbox"])

    def test_the_outermost_container_that_the_runtime_knows_counts(self):
        containers = {ID: SHOP, INNER: ("kube-system", "another", "another", "another:1")}
        # A container that makes a control group with the name of another one, and a node that is a container itself.
        for components, expected in (((f"cri-containerd-{ID}.scope", f"cri-containerd-{INNER}.scope"), "shop-7d9f-x"),
                                     ((f"docker-{'9' * 64}.scope", "kubelet", f"cri-containerd-{ID}.scope"), "shop-7d9f-x")):
            with self.subTest(components=components), self.program(*components) as target, self.server(containers=containers) as runtime:
                attributes, _ = self.recorded(target, runtime.socket)
                self.assertEqual(attributes["k8s.pod.name"], expected)
                self.assertNotEqual(attributes.get("container.image.name"), "another")

    def test_a_container_of_another_runtime_keeps_its_own_labels(self):
        with self.program() as target, self.server(containers={}) as runtime:
            attributes, said = self.recorded(target, runtime.socket)
        self.assert_claims(attributes)
        self.assertNotIn("container runtime", said)

    def check_manner(self, target, manner, why):
        with self.subTest(manner=manner), self.server(manner) as runtime:
            attributes, said = self.recorded(target, runtime.socket, seconds=6)
            self.assert_claims(attributes)
            self.assertIn(f"the container runtime at {runtime.socket} does not name a container", said)
            self.assertIn(why, said)
            self.assertLess(self.seconds, 6 + 15 * harness.slowness())

    def test_a_runtime_that_lies_or_hangs_is_a_notice_and_costs_no_time(self):
        with self.program() as target:
            self.check_manner(target, "liar", "about something else than what was asked")
            self.check_manner(target, "hang", "gives no answer")

    @harness.in_matrix
    def test_other_bad_runtimes_are_notices_and_cost_no_time(self):
        with self.program() as target:
            for manner, why in (("garbage", "no message of the CRI"), ("endless", "does not end"), ("old", "UNIMPLEMENTED")):
                self.check_manner(target, manner, why)
            for says in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\x04\x08\0\0\0\0\0" + b"\xff" * 4, os.urandom(65536), b""):
                with self.subTest(says=says[:20]), RawRuntime(says) as runtime:
                    attributes, said = self.recorded(target, runtime.socket, seconds=6)
                    self.assert_claims(attributes)
                    self.assertIn("does not name a container: it gives no answer", said)

    def test_one_that_is_not_there_is_a_notice_with_a_hint(self):
        with self.program() as target:
            attributes, said = self.recorded(target, "/nonexistent/cri.sock")
        self.assert_claims(attributes)
        self.assertIn("/nonexistent/cri.sock: No such file or directory", said)
        self.assertIn("/run/containerd/containerd.sock", said)

    def test_the_service_waits_for_one_that_comes_later_and_shows_its_names_everywhere(self):
        runtime = self.server()
        with self.program() as target, Service("--frequency", 99, "--cri-socket", runtime.socket, window="1s") as service:
            service.wait_for_log("does not name a container")
            with runtime:
                end = time.monotonic() + 90
                while True:
                    rows = [row for row in service.json("/api/processes")["processes"] if row["pid"] == target.host_pid]
                    if rows and rows[0]["labels"].get("k8s.pod.name") == "shop-7d9f-x":
                        break
                    self.assertLess(time.monotonic(), end, f"{rows}\n{service.said()}")
                    time.sleep(0.5)
                self.assertEqual(rows[0]["labels"]["container.image.tags"], "1.2")
                metrics = service.get("/metrics")[1].decode()
        (line,) = [line for line in metrics.splitlines() if line.startswith("clrsampler_process_info{") and f'pid="{target.host_pid}"' in line]
        for label in ('k8s_namespace_name="prod"', 'k8s_pod_name="shop-7d9f-x"', 'k8s_container_name="web"'):
            self.assertIn(label, line)

    def test_the_process_that_asks_has_nothing_else(self):
        with self.server() as runtime, Service("--cri-socket", runtime.socket) as service:
            (pid,) = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and self.is_asker(pid, service.process.pid)]
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
            self.assertEqual(int(status["CapEff"], 16) | int(status["CapPrm"], 16), 0)
            self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        end = time.monotonic() + 30
        while os.path.exists(f"/proc/{pid}"):
            self.assertLess(time.monotonic(), end, "it ends with the service")
            time.sleep(0.05)

    @staticmethod
    def is_asker(pid, parent):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii") as file:
            text = file.read()
            return "(clrsampler-cri)" in text and int(text.rpartition(")")[2].split()[1]) == parent
        return False


if __name__ == "__main__":
    harness.main()
