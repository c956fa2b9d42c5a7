#!/usr/bin/env python3
"""Access to the profiles of `clrsampler serve`, and what asking may cost.

A user who owns nothing here asks over TCP and over the Unix socket, floods both, and is refused within the budgets. A member of the socket's
group, a token, a cookie and TLS get in.
"""
import ast
import collections
import contextlib
import fcntl
import http.client
import os
import pty
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

import harness
from service import Service

TOKEN = "0123456789abcdef-token-of-the-test"
MEMBERS = 64321  # a group that nobody is in
PROFILE = "/api/profile?from=-1m&format=html"

# Asks for one target all the time, until its input ends or so many seconds are over; prints how often each status came.
FLOOD = """
import collections, http.client, socket, sys, threading, time
address, target, token, seconds = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
counts, end, over = collections.Counter(), time.monotonic() + seconds, threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
def ask(keep):
    client = None
    while time.monotonic() < end and not over.is_set():
        try:
            if client is None:
                if address.startswith("/"):
                    client = http.client.HTTPConnection("localhost", timeout=20)
                    client.sock = socket.socket(socket.AF_UNIX)
                    client.sock.connect(address)
                else:
                    client = http.client.HTTPConnection(*address.rsplit(":", 1), timeout=20)
            client.request("GET", target, headers={"Authorization": "Bearer " + token} if token else {})
            answer = client.getresponse()
            answer.read()
            counts[answer.status] += 1
            if answer.status in (429, 503) and int(answer.headers.get("Retry-After") or 0) < 1:
                counts["no Retry-After"] += 1
        except (OSError, http.client.HTTPException) as error:
            counts[type(error).__name__] += 1
            client = None
        if not keep:
            client = None
threads = [threading.Thread(target=ask, args=(i % 4 != 0,), daemon=True) for i in range(32)]
for thread in threads: thread.start()
for thread in threads: thread.join(seconds + 1)
print(dict(counts))
"""


def as_user(*groups):
    """A command line's beginning: `nobody`, in these groups and no others."""
    identity = harness.AS_NOBODY[:3]
    return [*identity, f"--groups={','.join(map(str, groups))}"] if groups else [*identity, "--clear-groups"]


def curl(user, *arguments):
    """The status that a user gets, or curl's reason for none."""
    done = subprocess.run([*user, "curl", "--silent", "--show-error", "--max-time", "30", "--output", "/dev/null", "--write-out", "%{http_code}",
                           *arguments], capture_output=True, text=True, timeout=300, check=False)
    return int(done.stdout) if done.returncode == 0 else done.stderr.strip()


class AccessTest(harness.LiveTest):
    NEEDS = ("setpriv", "curl", "openssl")

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="clrsampler-test-"))
        os.chmod(self.folder, 0o755)  # nobody must get as far as the socket

    def secret(self, name, text, mode=0o600):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def serve(self, *options, **more):
        return self.enterContext(Service("--no-history", *options, **{"token": None, "window": "1s", **more}))

    def url(self, service, target="/", scheme="http"):
        return f"{scheme}://{service.address[0]}:{service.address[1]}{target}"

    def test_nobody_gets_metrics_over_tcp_and_no_profiles(self):
        service = self.serve()
        self.assertEqual(curl(as_user(), self.url(service, "/metrics")), 200)
        self.assertEqual(curl(as_user(), self.url(service, "/-/ready")), 200)
        for target in ("/", "/assets/app.js", "/api/profile", "/api/status", "/api/processes", "/api/recordings", "/debug/pprof/profile?seconds=1",
                       "/metrics/", "/metrics/../api/status", "//metrics", "/-/ready/../../api/status"):
            self.assertIn(curl(as_user(), "--path-as-is", self.url(service, target)), (401, 403), target)
        status, body = service.get("/api/status")
        self.assertEqual(status, 403)
        for word in (b"--token-file", b"--allow-anonymous-profiles", b"socket"):
            self.assertIn(word, body)
        self.assertRegex(service.said(), r"note: .*/metrics.* only")

    def test_a_unix_socket_is_for_its_group(self):
        path = os.path.join(self.folder, "run", "http.sock")
        service = self.serve("--listen", f"unix:{path}", agent=["setpriv", f"--regid={MEMBERS}", "--clear-groups", harness.AGENT])
        info = os.stat(path)
        self.assertEqual(info.st_mode & 0o777, 0o660)
        asked = ("--unix-socket", path, "http://localhost/api/profile?format=folded")
        self.assertEqual(curl(as_user(info.st_gid), *asked), 200)
        self.assertRegex(str(curl(as_user(), *asked)), "[Cc]ould ?n.t connect|Failed to connect|ermission denied")
        # The same server, by TCP.
        self.assertEqual(curl(as_user(info.st_gid), self.url(service, "/api/status")), 403)

    def test_a_token_as_a_header_and_as_a_cookie(self):
        service = self.serve("--token-file", self.secret("token", f"# first\n{TOKEN}\n{TOKEN}-2\n"))
        for given, expected in (((), 401), (("--header", f"Authorization: Bearer {TOKEN}"), 200), (("--header", f"Authorization: Bearer {TOKEN}-2"), 200),
                                (("--user", f"pprof:{TOKEN}"), 200), (("--header", f"Authorization: Bearer {TOKEN}x"), 401),
                                (("--header", "Authorization: Bearer "), 401), (("--cookie", f"clrsampler-{service.address[1]}={TOKEN}"), 401)):
            self.assertEqual(curl(as_user(), *given, self.url(service, "/api/status")), expected, given)
        cookie, location = self.log_in(service, f"/?token={TOKEN}&a=b%20c")
        self.assertEqual(location, "./?a=b%20c")
        self.assertRegex(cookie, r"; HttpOnly; SameSite=Strict$")
        self.assertNotIn(TOKEN, cookie)
        pair = cookie.split(";")[0]
        for target in ("/", "/assets/app.js", "/api/status"):
            self.assertEqual(curl(as_user(), "--cookie", f"other=1; {pair}", self.url(service, target)), 200, target)
        self.assertEqual(self.log_in(service, "/?token=wrong"), (None, None))
        # A new token takes the old one's place, and with it its cookie.
        self.secret("token", f"{TOKEN}-3\n")
        service.process.send_signal(signal.SIGHUP)
        service.wait_for_log("sampling this host", times=2)
        service.address = ("127.0.0.1", int(re.findall(r"listening on http://\S+:(\d+)/", service.said())[-1]))
        self.assertEqual(curl(as_user(), "--header", f"Authorization: Bearer {TOKEN}", self.url(service, "/api/status")), 401)
        self.assertEqual(curl(as_user(), "--header", f"Authorization: Bearer {TOKEN}-3", self.url(service, "/api/status")), 200)
        # One that all may read is refused, and the one before holds.
        self.secret("token", f"{TOKEN}-4\n", 0o644)
        service.process.send_signal(signal.SIGHUP)
        service.wait_for_log("stays as it was.*every user may open it")

    def log_in(self, service, target):
        client = http.client.HTTPConnection(*service.address, timeout=20)
        with contextlib.closing(client):
            client.request("GET", target)
            answer = client.getresponse()
            answer.read()
            return answer.headers["Set-Cookie"], answer.headers["Location"]

    def test_a_file_that_others_may_read_is_no_secret(self):
        for mode, why in ((0o644, "every user may open it"), (0o660, "its group may change it")):
            done = subprocess.run([harness.AGENT, "serve", "--no-history", "--listen", "127.0.0.1:0", "--token-file", self.secret("token", TOKEN, mode)],
                                  capture_output=True, text=True, timeout=120, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr, f"error: .*{why}\nhint: chmod")

    def test_in_a_terminal_it_prints_a_link(self):
        ours, terminal = pty.openpty()
        process = subprocess.Popen([harness.AGENT, "serve", "--no-history", "--listen", "127.0.0.1:0"], stdin=subprocess.DEVNULL, stderr=terminal)
        os.close(terminal)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        said = b""
        while b"sampling this host" not in said:
            said += os.read(ours, 4096)
        link = re.search(r"open http://127\.0\.0\.1:(\d+)(/\?token=([0-9a-f]{48}))\r", said.decode())
        self.assertIsNotNone(link, said)
        jar = os.path.join(self.folder, "jar")
        address = f"http://127.0.0.1:{link[1]}"
        self.assertEqual(curl([], "--location", "--cookie-jar", jar, f"{address}{link[2]}"), 200)
        self.assertEqual(curl([], "--cookie", jar, f"{address}/api/status"), 200)
        self.assertEqual(curl(as_user(), f"{address}/api/status"), 401)
        os.close(ours)

    def test_tls(self):
        def certificate(name):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext",
                            "subjectAltName=IP:127.0.0.1", "-keyout", f"{self.folder}/key.pem", "-out", f"{self.folder}/cert.pem"],
                           check=True, capture_output=True)
        certificate("first")
        service = self.serve("--token-file", self.secret("token", TOKEN), "--tls-cert", f"{self.folder}/cert.pem", "--tls-key", f"{self.folder}/key.pem")
        service.address = self.tls_address(service)
        # Clients that never end their handshake hold up nobody, and go.
        slow = [self.enterContext(contextlib.closing(socket.create_connection(service.address))) for _ in range(50)]
        begun, longest = time.monotonic(), 0

        def asked(*arguments):
            nonlocal longest
            begin = time.monotonic()
            answer = curl([], *arguments)
            longest = max(longest, time.monotonic() - begin)
            return answer
        for one in slow:
            one.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc")
        trusting = ("--cacert", f"{self.folder}/cert.pem", "--header", f"Authorization: Bearer {TOKEN}")
        self.assertEqual(asked(*trusting, self.url(service, "/api/status", "https")), 200)
        self.assertEqual(asked(*trusting[:2], self.url(service, "/metrics", "https")), 200)
        self.assertIn("certificate", str(asked(self.url(service, "/metrics", "https"))))
        self.assertIsInstance(asked(self.url(service, "/metrics")), str, "no answer without TLS")
        self.assertIsInstance(asked(*trusting[:2], "--tls-max", "1.1", self.url(service, "/metrics", "https")), str, "nor with an old one")
        context = ssl.create_default_context(cafile=f"{self.folder}/cert.pem")
        client = http.client.HTTPSConnection(*service.address, timeout=20, context=context)
        with contextlib.closing(client):
            client.request("GET", f"/?token={TOKEN}")
            self.assertRegex(client.getresponse().headers["Set-Cookie"], r"^__Host-.*; Path=/; HttpOnly; SameSite=Strict; Secure$")
        self.assertLess(longest, 9, "no handshake waits for another one, which has 10 s")
        for one in slow:
            one.settimeout(90)
            with contextlib.suppress(ConnectionError):
                while one.recv(100):
                    pass
        self.assertLess(time.monotonic() - begun, 60, "a handshake has 10 s")
        certificate("second")
        service.process.send_signal(signal.SIGHUP)
        service.wait_for_log("sampling this host", times=2)
        service.address = self.tls_address(service)
        self.assertEqual(curl([], *trusting, self.url(service, "/api/status", "https")), 200)
        os.chmod(f"{self.folder}/key.pem", 0o644)
        service.process.send_signal(signal.SIGHUP)
        service.wait_for_log("stays as it was.*--tls-key.*every user may open it")

    @staticmethod
    def tls_address(service):
        found = re.findall(r"listening on https://(\S+):(\d+)/", service.said())[-1]
        return found[0], int(found[1])

    def test_two_fields_that_must_be_one(self):
        service = self.serve()
        for fields in (b"Host: localhost\r\nHost: localhost\r\n", b"Host: localhost\r\nhost: evil.example\r\n",
                       b"Host: localhost\r\nContent-Length: 0\r\nContent-Length: 0\r\n", b"Host: localhost\r\nContent-Length: 0\r\nContent-Length: 5\r\n"):
            with contextlib.closing(socket.create_connection(service.address, timeout=20)) as one:
                one.sendall(b"GET /metrics HTTP/1.1\r\n" + fields + b"\r\n")
                self.assertRegex(one.recv(100), rb"^HTTP/1.1 400 ", fields)

    def test_a_history_that_is_busy_is_waited_for(self):
        with open(os.path.join(self.folder, "history.db.lock"), "w", encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with Service(folder=self.folder, token=None, wait=False) as service:
                service.wait_for_log("another process writes .*; waiting for it")
                self.assertNotIn("sampling this host", service.said())
                fcntl.flock(held, fcntl.LOCK_UN)
                service.wait_for_log("sampling this host")
                self.assertEqual(service.stop(), 0)

    @harness.in_matrix
    def test_a_flood_over_tcp_stays_within_the_budget(self):
        service = self.serve()
        answers = self.flood(service, as_user(), f"{service.address[0]}:{service.address[1]}", PROFILE, "")
        self.assertEqual(answers[200], 0, answers)

    def test_a_flood_of_one_who_may_ask_stays_within_the_budget(self):
        service = self.serve("--token-file", self.secret("token", TOKEN))
        answers = self.flood(service, as_user(), f"{service.address[0]}:{service.address[1]}", PROFILE, TOKEN)
        self.assertGreater(answers[200], 0, answers)
        self.assertGreater(answers[429], 0, answers)
        self.assertEqual(answers["no Retry-After"], 0, answers)

    def refused(self, service):
        """The answer to a question beside a flood, once the budget is spent: that takes a while on a crowded machine."""
        end = time.monotonic() + 40
        while time.monotonic() < end:
            client = http.client.HTTPConnection(*service.address, timeout=20)
            with contextlib.closing(client):
                client.request("GET", PROFILE, headers={"Authorization": f"Bearer {TOKEN}"})
                answer = client.getresponse()
                said = answer.read()
            if b"as much of a CPU as they may" in said:
                return answer.status
            time.sleep(0.2)
        self.fail("the budget has no end")

    def flood(self, service, user, address, target, token, seconds=60, measured=7):
        """The answers. The amount that may be taken at once is taken first; all that comes after it is the share."""
        time.sleep(2)  # some windows
        before = self.memory(service)
        flooding = subprocess.Popen([*user, sys.executable, "-c", FLOOD, address, target, token, str(seconds)],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(flooding.kill)
        time.sleep(3)
        if token:
            self.assertEqual(self.refused(service), 429)
        begin, cpu, most = time.monotonic(), self.serving_seconds(service), 0
        scraped = 0.0
        while time.monotonic() < begin + measured:
            most = max(most, self.memory(service) - before)
            asked = time.monotonic()
            self.assertEqual(service.get("/metrics")[0], 200)
            scraped = max(scraped, time.monotonic() - asked)
            time.sleep(0.2)
        share = (self.serving_seconds(service) - cpu) / (time.monotonic() - begin)
        answers = collections.Counter(ast.literal_eval(flooding.communicate(timeout=180)[0]))
        print(f"    {self._testMethodName}: {share:.3f} of a CPU, {most / 1e6:.0f} MB more, scrape {scraped:.2f} s, {dict(answers)}", flush=True)
        self.assertLessEqual(share, 0.10, "of a CPU")
        self.assertLessEqual(most, 64 << 20, "bytes")
        self.assertLess(scraped, 10, "Prometheus waits so long")
        return answers

    @staticmethod
    def serving_seconds(service):
        """CPU time of all its threads but that which samples."""
        ticks = 0
        for thread in os.listdir(f"/proc/{service.process.pid}/task"):
            if int(thread) == service.process.pid:
                continue
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{service.process.pid}/task/{thread}/stat", encoding="utf-8") as file:
                ticks += sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def memory(service):
        with open(f"/proc/{service.process.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"RssAnon:\s*(\d+)", file.read())[1]) * 1024


if __name__ == "__main__":
    harness.main()
