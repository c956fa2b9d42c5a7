"""Receivers of OTLP profiles for tests: over HTTP of Python's own server, over gRPC of grpcio's, each with the manners of bad servers.

`manners`: what is done with each request in turn, then "take".

    take        all is taken
    partial     one profile is rejected, with a message
    again       HTTP 429 with Retry-After, gRPC RESOURCE_EXHAUSTED with RetryInfo: one second each
    down        HTTP 503, gRPC UNAVAILABLE
    refuse      HTTP 400, gRPC PERMISSION_DENIED
    garbage     taken, with an answer that is none
    slow        taken, after a second
    hang        no answer, until the client goes
    endless     HTTP only: taken, with an answer without an end
"""
import contextlib
import gzip
import http.server
import json
import os
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import harness
import otlp_check
import raw_server

HTTP_PATH = "/v1development/profiles"
TAKES = {"take", "partial", "garbage", "slow", "endless"}
# ExportProfilesServiceResponse {partial_success {rejected_profiles: 1, error_message: "one is bad"}}
PARTIAL = b"\x0a\x0e\x08\x01\x12\x0aone is bad"


class Received:
    """One request: the message as it was sent, and what was done with it."""

    def __init__(self, message, manner, headers):
        self.message, self.manner, self.headers = message, manner, headers
        self.checked = otlp_check.Checker(message)

    @property
    def taken(self):
        return self.manner in TAKES

    def samples(self):
        return sum(value for kind, values in self.values() if kind == ("samples", "count") for value in values)

    def values(self):
        """(type, values) of each profile."""
        for _, profiles in self.checked.profiles.resources:
            for profile in profiles:
                yield profile["type"], [value for sample in profile["samples"] for value in sample["values"] or [1] * len(sample["times"])]

    def services(self):
        return {attributes["service.name"] for attributes, _ in self.checked.profiles.resources}


class Receiver:
    """`requests`: those that came, in their order. `url`: where they go."""

    def __init__(self):
        self.requests = []

    def taken_samples(self):
        return sum(request.samples() for request in self.requests if request.taken)

    def findings(self):
        return [finding for request in self.requests for finding in request.checked.findings]

    def await_requests(self, count, seconds=120):
        end = time.monotonic() + seconds
        while len(self.requests) < count:
            if time.monotonic() > end:
                raise AssertionError(f"{len(self.requests)} requests of {count} in {seconds} s")
            time.sleep(0.05)
        return self.requests


class HttpReceiver(Receiver):
    def __init__(self, *manners, certificate=None):
        super().__init__()
        self.manners, self.ending = list(manners), threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # pylint: disable=invalid-name
                receiver.handle(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{'https' if certificate else 'http'}://localhost:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def handle(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        if handler.path != HTTP_PATH or handler.headers["Content-Encoding"] != "gzip" or handler.headers["Content-Type"] != "application/x-protobuf":
            self.answer(handler, 404)
            raise AssertionError(f"{handler.path} {dict(handler.headers)}")
        manner = self.manners.pop(0) if self.manners else "take"
        self.requests.append(Received(gzip.decompress(body), manner, dict(handler.headers)))
        if manner == "hang":
            self.ending.wait()
            handler.close_connection = True
        elif manner == "endless":
            with contextlib.suppress(OSError):
                handler.send_response(200)
                handler.send_header("Transfer-Encoding", "chunked")
                handler.end_headers()
                while not self.ending.is_set():
                    handler.wfile.write(b"1000\r\n" + bytes(4096) + b"\r\n")
            handler.close_connection = True
        else:
            if manner == "slow":
                time.sleep(1)
            status, answer = {"take": (200, b""), "slow": (200, b""), "partial": (200, PARTIAL), "garbage": (200, b"<html>\xff"), "again": (429, b""),
                              "down": (503, b""), "refuse": (400, b"\x08\x03\x12\x04oops")}[manner]
            self.answer(handler, status, answer, {"Retry-After": "1"} if manner == "again" else {})

    @staticmethod
    def answer(handler, status, body=b"", headers=()):
        handler.send_response(status)
        for name, value in dict(headers).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class GrpcReceiver(Receiver):
    """A process of its own: otlp_grpc_receiver.py."""

    def __init__(self, *manners, certificate=None):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="clrsampler-test-")
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "otlp_grpc_receiver.py")
        self.process = subprocess.Popen([harness.python_with("grpc"), program, self.folder.name, ",".join(manners), *(certificate or ())],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        port = json.loads(self.process.stdout.readline())["port"]
        self.url = f"{'grpcs' if certificate else 'grpc'}://localhost:{port}"
        self.thread = threading.Thread(target=self.read)

    def read(self):
        for line in self.process.stdout:
            request = json.loads(line)
            with open(request["file"], "rb") as file:
                self.requests.append(Received(file.read(), request["manner"], request["headers"]))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)
        self.thread.join()
        self.process.stdout.close()
        self.folder.cleanup()


class RawReceiver(raw_server.RawServer):
    def __init__(self, says, scheme):
        super().__init__(says, socket.create_server(("127.0.0.1", 0)))
        self.url = f"{scheme}://127.0.0.1:{self.listener.getsockname()[1]}"


def make_certificate(folder):
    """(certificate, key) of localhost, which is its own authority."""
    paths = [os.path.join(folder, name) for name in ("cert.pem", "key.pem")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", paths[1], "-out", paths[0]], check=True, capture_output=True, timeout=120)
    return paths
