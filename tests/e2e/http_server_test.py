#!/usr/bin/env python3
"""The service's HTTP server over made-up windows (tests/apps/export_host): what clients may ask, what they can't do to it.

Needs neither root nor .NET.
"""
import concurrent.futures
import contextlib
import email
import gzip
import http.client
import http.server
import json
import os
import resource
import shutil
import socket
import stat
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

import harness
import runtimes

EXPORT_HOST = os.environ.get("EXPORT_HOST", os.path.join(runtimes.BUILD, "release", "tests", "apps", "export_host"))


def need(test, program):
    if shutil.which(program):
        return
    if harness.REQUIRE_LIVE:
        test.fail(f"{program} is not installed")
    test.skipTest(f"{program} is not installed")


class Server:
    """export_host, and requests to it."""

    def __init__(self, *options, listen="127.0.0.1:0"):
        # 1,000 clients and their connections on one machine.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
        self.process = subprocess.Popen([EXPORT_HOST, listen, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            raise AssertionError(f"export_host said {line!r}")
        self.address = line.split()[-1]
        self.unix = self.address.startswith("/")
        if not self.unix:
            host, port = self.address.rsplit(":", 1)
            self.host, self.port = host.strip("[]"), int(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        status = self.process.wait(90)
        if status:
            raise AssertionError(f"export_host ended with {status}")

    def connect(self, timeout=90):
        if self.unix:
            one = socket.socket(socket.AF_UNIX)
            one.settimeout(timeout)
            one.connect(self.address)
            return one
        return socket.create_connection((self.host, self.port), timeout=timeout)

    def get(self, target, patient=True, **options):
        """status, headers, body; of a question beyond the budget as a client that keeps Retry-After."""
        deadline = time.monotonic() + 60
        while True:
            status, headers, body = self.ask(target, **options)
            if status not in (429, 503) or not patient or time.monotonic() > deadline:
                return status, headers, body
            time.sleep(min(int(headers["Retry-After"]), 5))

    def ask(self, target, method="GET", headers=None, body=None, timeout=90):
        client = http.client.HTTPConnection("localhost" if self.unix else self.host, None if self.unix else self.port, timeout=timeout)
        if self.unix:
            client.sock = self.connect(timeout)
        with contextlib.closing(client):
            client.request(method, target, body=body, headers=headers or {})
            answer = client.getresponse()
            return answer.status, answer.headers, answer.read()

    def json(self, target, **options):
        status, _, body = self.get(target, **options)
        return status, json.loads(body)

    def raw(self, data, timeout=30):
        """All that comes back for these bytes until the connection ends or is quiet."""
        with contextlib.closing(self.connect(timeout)) as one:
            received = b""
            with contextlib.suppress(OSError):
                one.sendall(data)
                one.shutdown(socket.SHUT_WR)
                while chunk := one.recv(65536):
                    received += chunk
            return received

    def metric(self, name, *labels):
        text = self.get("/metrics")[2].decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if line.split("{")[0].split(" ")[0] == name and all(label in line for label in labels))

    def await_metric(self, expected, name, *labels):
        """Answers are counted when they have left; and what was scraped half a second ago is told again."""
        deadline = time.monotonic() + 60
        while (seen := self.metric(name, *labels)) < expected and time.monotonic() < deadline:
            time.sleep(0.1)
        return seen

    def sockets(self):
        folder, count = f"/proc/{self.process.pid}/fd", 0
        for descriptor in os.listdir(folder):
            with contextlib.suppress(OSError):
                count += os.readlink(f"{folder}/{descriptor}").startswith("socket:")
        return count

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class HttpServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.access(EXPORT_HOST, os.X_OK):
            raise AssertionError(f"no program at {EXPORT_HOST}; build it, or name it in EXPORT_HOST")
        cls.server = cls.enterClassContext(Server("--window-ms", "500"))
        deadline = time.monotonic() + 60
        while cls.server.json("/api/status")[1]["newest"] is None and time.monotonic() < deadline:
            time.sleep(0.1)

    def test_answers_have_the_headers_that_keep_browsers_at_bay(self):
        for target in ("/", "/metrics", "/api/status", "/nope", "/api/profile?format=svg"):
            _, headers, _ = self.server.get(target)
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"], target)
            self.assertIn("frame-ancestors 'none'", headers["Content-Security-Policy"], target)
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff", target)
            self.assertEqual(headers["Cross-Origin-Resource-Policy"], "same-origin", target)
            self.assertIsNone(headers["Access-Control-Allow-Origin"], target)
            self.assertIsNone(headers["Server"], target)

    def test_head_has_the_length_and_nothing_else(self):
        length = int(self.server.get("/debug/pprof/")[1]["Content-Length"])
        status, headers, body = self.server.get("/debug/pprof/", method="HEAD")
        self.assertEqual((status, int(headers["Content-Length"]), body), (200, length, b""))

    def test_one_connection_serves_many_requests(self):
        client = http.client.HTTPConnection(self.server.host, self.server.port, timeout=30)
        with contextlib.closing(client):
            client.connect()
            first = client.sock
            for target in ("/", "/api/status", "/nope", "/metrics", "/api/health") * 3:
                client.request("GET", target)
                client.getresponse().read()
                self.assertIs(client.sock, first, target)

    def test_other_methods_and_bodies_are_refused(self):
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
            status, headers, _ = self.server.get("/api/status", method=method)
            self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"), method)
        self.assertEqual(self.server.get("/api/status", body=b"x" * 100)[0], 413)
        self.assertTrue(self.server.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
                        .startswith(b"HTTP/1.1 413"))
        # A client that insists on sending gigabytes is not listened to.
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"
        self.assertTrue(self.server.raw(head + b"x" * 1_000_000).startswith((b"HTTP/1.1 405", b"")))

    def test_malformed_and_huge_requests(self):
        requests = (b"", b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"\x00" * 4096, b"GET / HTTP/9.9\r\n\r\n",
                    b"GET / HTTP/1.1\r\n\r\n", b"GET http://evil/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n",
                    b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 100_000 + b"\r\n",
                    b"GET /api/profile?pid=%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /%ff HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
                    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello")
        # The server waits for the rest of some of them, so they come at the same time.
        with concurrent.futures.ThreadPoolExecutor(5) as clients:
            answers = list(clients.map(self.server.raw, requests))
        for data, answer in zip(requests, answers):
            self.assertTrue(answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4", b"HTTP/1.1 5")), (data[:60], answer[:200]))
        long_target = "/api/profile?comm=" + "a" * 9000
        self.assertIn(self.server.get(long_target)[0], (400, 414, 431))
        self.assertEqual(self.server.get("/api/status")[0], 200)
        self.assertGreater(self.server.await_metric(1, "clrsampler_http_connections_ended_total", 'reason="no_request"'), 0)

    def test_what_nobody_should_get(self):
        for target in ("/../../etc/passwd", "/..%2f..%2fetc/passwd", "/assets/../../etc/passwd", "/assets/%2e%2e/%2e%2e/etc/passwd",
                       "/api/recordings/..", "/api/recordings/..%2f..%2fetc%2fpasswd", "/proc/self/environ", "//etc/passwd", "/assets/"):
            status, _, body = self.server.get(target)
            self.assertEqual(status, 404, target)
            self.assertNotIn(b"root:", body)
        for target, expected in (("/api/profile?pid=3999999", 404), ("/debug/pprof/profile?pid=3999999&seconds=1", 404),
                                 ("/api/profile?pdi=4711", 400), ("/api/profile?pid=4711&pid=1", 400), ("/api/profile?pid=-1", 400),
                                 ("/api/profile?pid=../1", 400), ("/api/status?verbose=1", 400), ("/api/timeline?points=1e9", 400),
                                 ("/debug/pprof/profile?seconds=100000", 400), ("/api/pauses?limit=99999999", 400)):
            status, answer = self.server.json(target)
            self.assertEqual(status, expected, target)
            self.assertEqual(set(answer), {"error", "hint"}, target)
            self.assertTrue(answer["error"], target)

    def test_pages_of_other_origins_read_nothing(self):
        port = self.server.port
        for headers, expected in (({"Host": "evil.example"}, 421), ({"Host": f"rebound.evil.example:{port}"}, 421),
                                  ({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403),
                                  ({"Origin": f"http://localhost:{port + 1}"}, 403),
                                  ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}, 403),
                                  ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, 403),
                                  ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403),
                                  ({"Origin": f"http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"}, 200),
                                  ({"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, 200), ({}, 200)):
            for target in ("/api/profile?format=folded", "/metrics", "/api/status"):
                status, answer_headers, body = self.server.get(target, headers=headers)
                self.assertEqual(status, expected, (target, headers))
                self.assertIsNone(answer_headers["Access-Control-Allow-Origin"])
                if expected != 200:
                    self.assertNotIn(b"Shop", body)
        link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        self.assertEqual(self.server.get("/", headers=link)[0], 200)

    def test_metrics_are_what_promtool_expects(self):
        need(self, "promtool")
        status, headers, text = self.server.get("/metrics")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        packed = self.server.get("/metrics", headers={"Accept-Encoding": "gzip"})
        self.assertEqual(packed[1]["Content-Encoding"], "gzip")
        self.assertTrue(gzip.decompress(packed[2]).startswith(b"# HELP"))

    def test_requests_are_counted(self):
        before = self.server.metric("clrsampler_http_requests_total", 'endpoint="/api/jit"', 'code="200"')
        for _ in range(7):
            self.server.get("/api/jit")
        after = self.server.await_metric(before + 7, "clrsampler_http_requests_total", 'endpoint="/api/jit"', 'code="200"')
        self.assertEqual(after, before + 7)

    def test_a_profile_of_the_next_seconds(self):
        with Server("--window-ms", "300000") as server:
            begin = time.monotonic()
            status, headers, body = server.get("/debug/pprof/profile?seconds=2")
            took = time.monotonic() - begin
        self.assertEqual(status, 200, body)
        self.assertIn("attachment", headers["Content-Disposition"])
        self.assertGreaterEqual(took, 2)
        self.assertLess(took, 60, "a window of five minutes is ended for it")
        self.assertTrue(gzip.decompress(body))

    def test_slow_clients_do_not_keep_others_out(self):
        slow = []
        try:
            for _ in range(300):
                one = self.server.connect()
                one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX")
                slow.append(one)
            longest, end = 0, time.monotonic() + 14
            while time.monotonic() < end:
                begin = time.monotonic()
                self.assertEqual(self.server.get("/-/ready")[0], 200)
                longest = max(longest, time.monotonic() - begin)
                for one in slow:  # a byte now and then
                    with contextlib.suppress(OSError):
                        one.sendall(b"x")
                time.sleep(0.2)
            self.assertLess(longest, 9, "nobody waits until a slow one, which has 10 s, is gone")

            def ended():
                return sum(self.server.metric("clrsampler_http_connections_ended_total", f'reason="{reason}"') for reason in ("evicted", "slow_request"))
            end = time.monotonic() + 60
            while ended() < 300:
                self.assertLess(time.monotonic(), end, "all of them have to go")
                time.sleep(0.2)
        finally:
            for one in slow:
                one.close()

    def test_a_thousand_clients_at_once(self):
        targets = ("/metrics", "/", "/api/status", "/api/timeline?from=-10s", "/api/profile?from=-10s&format=page")

        def ask(i):
            return self.server.get(targets[i % len(targets)], patient=False, timeout=150)[0]

        before = self.server.resident_bytes()
        with concurrent.futures.ThreadPoolExecutor(1000) as pool:
            statuses = list(pool.map(ask, range(3000)))
        counts = {status: statuses.count(status) for status in set(statuses)}
        self.assertLessEqual(set(counts), {200, 429, 503}, counts)
        # Those of /metrics and of the page itself, which cost nearly nothing; the others have a budget.
        self.assertGreaterEqual(counts[200], 1150, counts)
        self.assertLess(self.server.resident_bytes() - before, 64 << 20)
        self.assertEqual(self.server.get("/api/status")[0], 200)

    def test_a_client_that_never_reads_holds_up_nobody(self):
        lazy = []
        try:
            for _ in range(20):
                one = self.server.connect()
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.sendall(b"GET /api/profile?from=-1m&format=html HTTP/1.1\r\nHost: localhost\r\n\r\n")
                lazy.append(one)
            for _ in range(20):
                begin = time.monotonic()
                self.assertEqual(self.server.get("/metrics")[0], 200)
                self.assertIn(self.server.get("/api/status", patient=False)[0], (200, 429, 503), "what they asked for is of the same budget")
                self.assertLess(time.monotonic() - begin, 20, "a client that does not read has longer")
        finally:
            for one in lazy:
                one.close()

    def test_a_signal_ends_it_while_clients_wait(self):
        with Server("--window-ms", "100000") as server:
            pool = concurrent.futures.ThreadPoolExecutor(4)
            waiting = [pool.submit(server.ask, "/debug/pprof/profile?seconds=200") for _ in range(4)]
            end = time.monotonic() + 60
            while server.sockets() < 5 and time.monotonic() < end:  # those that wait, and the one that listens
                time.sleep(0.05)
            time.sleep(1)  # each has sent its question with the connection; nothing tells that it was read
            server.process.terminate()
            for one in waiting:
                self.assertEqual(one.result(90)[0], 503)
            self.assertEqual(server.process.wait(90), 0)
            pool.shutdown()


class AddressTest(unittest.TestCase):
    def test_a_unix_socket(self):
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            path = os.path.join(folder, "http.sock")
            with Server(listen=f"unix:{path}") as server:
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o660)
                self.assertEqual(server.get("/api/status", headers={"Host": "anything"})[0], 200)
                self.assertEqual(server.get("/api/status", headers={"Origin": "http://evil.example"})[0], 403)
            self.assertFalse(os.path.exists(path))

    def test_ipv6_loopback(self):
        with Server(listen="[::1]:0") as server:
            self.assertEqual(server.get("/api/status", headers={"Host": f"[::1]:{server.port}"})[0], 200)

    def test_an_address_in_use_is_said(self):
        with Server() as server:
            done = subprocess.run([EXPORT_HOST, server.address], capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("can't listen on", done.stderr)
            self.assertIn("--listen", done.stderr)


class TextfileTest(unittest.TestCase):
    def test_is_replaced_as_a_whole_and_has_no_metrics_of_node_exporter(self):
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            path = os.path.join(folder, "clrsampler.prom")
            with Server("--window-ms", "50", "--textfile", folder):
                begin, read = time.monotonic(), 0
                while time.monotonic() < begin + 3 or (read <= 10 and time.monotonic() < begin + 60):
                    with contextlib.suppress(FileNotFoundError):
                        with open(path, encoding="utf-8") as file:
                            text = file.read()
                        self.assertIn("clrsampler_build_info", text)
                        self.assertTrue(text.endswith("\n"))
                        read += 1
                self.assertGreater(read, 10)
            self.assertNotIn("\nprocess_", text)
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o644)
            self.assertEqual(os.listdir(folder), ["clrsampler.prom"])


class Receiver:
    """Takes what is pushed: answers with each of `statuses` in turn, then 200."""

    def __init__(self, *statuses):
        self.requests, self.statuses = [], list(statuses)
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((self.path, dict(self.headers), body))
                status = receiver.statuses.pop(0) if receiver.statuses else 200
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "file:///etc/passwd")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/base/"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def await_requests(self, count):
        deadline = time.monotonic() + 90
        while len(self.requests) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.requests


def fields(message):
    """The fields of a protobuf message: number -> values, bytes or numbers."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 2:
            length = varint()
            value = message[at:at + length]
            at += length
        else:
            value = varint()
        found.setdefault(key >> 3, []).append(value)
    return found


class PushTest(unittest.TestCase):
    def test_each_window_arrives_as_pyroscope_reads_it(self):
        with Receiver() as receiver, Server("--window-ms", "500", "--push", receiver.url, "--push-header", "X-Scope-OrgID: shop") as server:
            requests = receiver.await_requests(6)
            self.assertGreaterEqual(len(requests), 6)
            self.assertGreaterEqual(server.await_metric(3, "clrsampler_push_requests_total", 'result="sent"'), 3)
            self.assertEqual(server.metric("clrsampler_push_dropped_total"), 0)
        names = set()
        for path, headers, body in requests:
            parts = urllib.parse.urlsplit(path)
            self.assertEqual(parts.path, "/base/ingest")
            query = dict(urllib.parse.parse_qsl(parts.query, strict_parsing=True))
            self.assertEqual((query["format"], query["spyName"]), ("pprof", "clrsampler"))
            self.assertLess(int(query["from"]), int(query["until"]))
            self.assertLess(abs(int(query["until"]) - time.time()), 300)
            self.assertEqual(headers["X-Scope-OrgID"], "shop")
            names.add(query["name"])
            form = email.message_from_bytes(b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + body)
            posted = {part.get_param("name", header="Content-Disposition"): part for part in form.get_payload()}
            self.assertTrue(all(part.get_filename() for part in posted.values()), "Pyroscope looks among the files of the form")
            types = json.loads(posted["sample_type_config"].get_payload(decode=True))
            profile = fields(gzip.decompress(posted["profile"].get_payload(decode=True)))
            strings = [text.decode("utf-8") for text in profile[6]]
            sample_types = [fields(one) for one in profile[1]]
            self.assertEqual([(strings[one[1][0]], strings[one[2][0]]) for one in sample_types], [("cpu", "nanoseconds")])
            self.assertEqual(types["cpu"]["units"], "nanoseconds")
            self.assertEqual(profile[10], [500_000_000], "half a second")
            if query["name"].startswith("shop-web{"):
                self.assertIn("Shop.Main", strings)
                self.assertFalse([text for text in strings if text.startswith("envoy")])
        self.assertIn("shop-web{host=made-up}", names)

    def test_a_server_that_comes_back_gets_what_it_missed(self):
        with Receiver(503, 500, 302) as receiver, Server("--window-ms", "1000", "--push", receiver.url, "--push-by", "process") as server:
            requests = receiver.await_requests(7)
            self.assertEqual(requests[0][0], requests[1][0], "the same again")
            self.assertEqual(requests[0][0], requests[2][0])
            self.assertNotEqual(requests[2][0], requests[3][0], "a redirection is a refusal")
            self.assertEqual(server.await_metric(2, "clrsampler_push_requests_total", 'result="failed"'), 2)
            self.assertEqual(server.await_metric(1, "clrsampler_push_dropped_total", 'reason="refused"'), 1)
            self.assertIn("pid%3D4711", "".join(path for path, _, _ in requests))

    def test_nobody_there_is_counted_and_disturbs_nothing(self):
        bound, port = harness.bound_port()
        with contextlib.closing(bound), Server("--window-ms", "200", "--push", f"http://127.0.0.1:{port}") as server:
            self.assertGreaterEqual(server.await_metric(2, "clrsampler_push_requests_total", 'result="failed"'), 2)
            self.assertEqual(server.get("/api/status")[0], 200)


class PrometheusTest(unittest.TestCase):
    CONFIGURATION = """
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
- job_name: clrsampler
  static_configs: [{targets: ['%s']}]
"""

    @staticmethod
    def documented_queries():
        with open(os.path.join(runtimes.SOURCE, "docs", "metrics.md"), encoding="utf-8") as file:
            return [line for line in file.read().split("```\n")[1].splitlines() if line and not line.startswith("#")]

    def test_scrapes_and_answers_p99_by_process(self):
        need(self, "prometheus")
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(Server("--window-ms", "250", "--short-lived", "20", "--max-processes", "5"))
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="clrsampler-test-"))
            with open(os.path.join(folder, "prometheus.yml"), "w", encoding="utf-8") as file:
                file.write(self.CONFIGURATION % server.address)
            prometheus, port = harness.start_prometheus(folder)
            stack.callback(prometheus.wait, 90)
            stack.callback(prometheus.terminate)

            def query(expression):
                client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                with contextlib.closing(client):
                    client.request("GET", "/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
                    return json.loads(client.getresponse().read())["data"]["result"]

            def await_result(expression, enough):
                deadline, result = time.monotonic() + 120, []
                while time.monotonic() < deadline:
                    with contextlib.suppress(OSError, KeyError, IndexError, json.JSONDecodeError, http.client.HTTPException):
                        result = query(expression)
                        if enough(result):
                            return result
                    time.sleep(0.3)
                self.fail(f"{expression}: {result}")

            documented = self.documented_queries()
            p99 = next(expression for expression in documented if expression.startswith("histogram_quantile"))
            shop = await_result(p99, lambda result: any(one["metric"]["process"] == "Shop-4711" and one["value"][1] != "NaN" for one in result))
            value = next(float(one["value"][1]) for one in shop if one["metric"]["process"] == "Shop-4711")
            self.assertTrue(0.01 <= value <= 0.025, f"all pauses take 20 ms, and p99 is {value}")
            await_result("up", lambda result: result[0]["value"][1] == "1")  # a single scrape may be late
            joined = next(expression for expression in documented if "group_left" in expression)
            await_result(joined, lambda result: "10.0.12" in {one["metric"].get("runtime") for one in result})
            for expression in documented:
                with self.subTest(expression):
                    query(expression)  # fails where it is none
            self.assertLessEqual(len(query("count by (process) (clrsampler_process_cpu_seconds_total)")), 6)


if __name__ == "__main__":
    harness.main()
