#!/usr/bin/env python3
"""--otlp over made-up windows (tests/apps/export_host): what good and bad receivers get, over HTTP and gRPC, and that every sample is counted.

Needs neither root nor .NET.
"""
import os
import tempfile
import time
import unittest

import harness
import otlp_receivers
from http_server_test import EXPORT_HOST, Server, need

SAMPLES = "clrsampler_otlp_samples_total"
REQUESTS = "clrsampler_otlp_requests_total"


class PushTest(unittest.TestCase):
    """Over HTTP."""

    RECEIVER = otlp_receivers.HttpReceiver
    SCHEME = "http"

    @classmethod
    def setUpClass(cls):
        if not os.access(EXPORT_HOST, os.X_OK):
            raise AssertionError(f"no program at {EXPORT_HOST}; build it, or name it in EXPORT_HOST")

    @staticmethod
    def server(receiver, *options, window_ms=200):
        return Server("--window-ms", str(window_ms), "--processes", "20", "--otlp", receiver.url, *options)

    def settle(self, server):
        """(taken, sent, dropped, waiting) in a moment in which nothing is on its way."""
        end = time.monotonic() + 60
        while True:
            values = [server.metric(SAMPLES, f'result="{result}"') for result in ("taken", "sent", "dropped")]
            values.append(server.metric("clrsampler_otlp_waiting_samples"))
            if values[0] == sum(values[1:]):
                return values
            self.assertLess(time.monotonic(), end, f"taken, sent, dropped, waiting: {values}")

    def assert_counted(self, server, receiver):
        """Twice the same, so that nothing has come meanwhile: what the receiver took is what was counted as sent."""
        end = time.monotonic() + 60
        while True:
            before = receiver.taken_samples()
            _, sent, _, _ = self.settle(server)
            if before == sent == receiver.taken_samples():
                break
            self.assertLess(time.monotonic(), end, f"{before} samples were received and {sent} sent")
        self.assertEqual(receiver.findings(), [])

    def run_with(self, *manners, requests=8, options=()):
        """The receiver after so many requests, and the metrics: the accounts hold."""
        with self.RECEIVER(*manners) as receiver, self.server(receiver, *options) as server:
            receiver.await_requests(requests)
            self.assert_counted(server, receiver)
            metrics = server.get("/metrics")[2].decode()
        return receiver, lambda name, label="": sum(float(line.rsplit(" ", 1)[1]) for line in metrics.splitlines()
                                                    if line.startswith(name) and label in line)

    def test_every_request_keeps_the_rules_and_has_every_sample(self):
        receiver, metric = self.run_with(requests=20, options=("--otlp-header", "X-Scope-OrgID: shop"))
        self.assertEqual(metric("clrsampler_otlp_dropped_total"), 0)
        self.assertEqual(metric(REQUESTS, "failed"), 0)
        for request in receiver.requests:
            self.assertIn("shop-web", request.services())
            self.assertEqual({key.lower(): value for key, value in request.headers.items()}["x-scope-orgid"], "shop")
            for attributes, profiles in request.checked.profiles.resources:
                self.assertEqual(attributes["host.name"], "made-up")
                self.assertEqual(attributes.get("process.runtime.name"), ".NET" if attributes["service.name"].startswith(("s", "S")) else None)
                for profile in profiles:
                    self.assertEqual((profile["type"], profile["period_type"]), (("samples", "count"), ("cpu", "nanoseconds")))

    def test_processes_are_resources_where_that_is_asked_for(self):
        receiver, _ = self.run_with(requests=2, options=("--otlp-by", "process"))
        pids = [attributes["process.pid"] for attributes, _ in receiver.requests[0].checked.profiles.resources]
        self.assertIn(4711, pids)
        self.assertEqual(len(pids), len(set(pids)))

    def test_a_large_window_is_several_requests(self):
        receiver, metric = self.run_with(requests=20, options=("--otlp-bytes", "6000"))
        self.assertLessEqual(max(len(request.message) for request in receiver.requests), 6000)
        self.assertEqual(metric("clrsampler_otlp_dropped_total"), 0)

    def test_what_asks_to_come_again_later_gets_everything(self):
        begin = time.monotonic()
        receiver, metric = self.run_with("again", "down", "again", requests=10)
        self.assertGreater(time.monotonic() - begin, 2, "twice a second is asked for")
        self.assertEqual(len({request.message for request in receiver.requests[:4]}), 1, "the same again")
        self.assertEqual(metric(REQUESTS, "failed"), 3)
        self.assertEqual(metric("clrsampler_otlp_dropped_total"), 0)

    def test_partial_success_is_counted_and_not_sent_again(self):
        receiver, metric = self.run_with("partial", "take", "partial")
        self.assertEqual(metric("clrsampler_otlp_rejected_profiles_total"), 2)
        self.assertEqual(metric(REQUESTS, "failed"), 0)
        self.assertEqual(len({request.message for request in receiver.requests}), len(receiver.requests))

    def test_an_answer_that_is_none_is_counted_and_not_sent_again(self):
        receiver, metric = self.run_with("garbage", "garbage")
        self.assertEqual(metric(REQUESTS, "unreadable"), 2)
        self.assertEqual(len({request.message for request in receiver.requests}), len(receiver.requests))

    def test_what_is_refused_is_lost_and_counted(self):
        receiver, metric = self.run_with("refuse", "take", "refuse")
        refused = sum(request.samples() for request in receiver.requests if not request.taken)
        self.assertEqual(metric(SAMPLES, "dropped"), refused)
        self.assertEqual(metric("clrsampler_otlp_dropped_total", "refused"), 2)

    def test_a_slow_server_gets_everything(self):
        _, metric = self.run_with("slow", "slow", "slow")
        self.assertEqual(metric("clrsampler_otlp_dropped_total"), 0)

    def test_a_server_that_hangs_costs_one_attempt(self):
        receiver, metric = self.run_with("hang", requests=6, options=("--otlp-seconds", "2"))
        self.assertEqual(receiver.requests[0].message, receiver.requests[1].message)
        self.assertEqual(metric(REQUESTS, "failed"), 1)
        self.assertEqual(metric("clrsampler_otlp_dropped_total"), 0)

    def test_servers_of_another_kind_are_failures_within_bounds(self):
        for says in (b"", os.urandom(4096), b"HTTP/1.1 700 \r\n\r\n" * 2000, b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" * 1000, b"SSH-2.0-OpenSSH_9.2\r\n"):
            with self.subTest(says[:20]), otlp_receivers.RawReceiver(says, self.SCHEME) as receiver, \
                    self.server(receiver, "--otlp-seconds", "1") as server:
                end = time.monotonic() + 60
                while server.metric(REQUESTS) == 0:
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.1)
                taken, sent, dropped, waiting = self.settle(server)
                self.assertEqual(sent, 0)
                self.assertEqual(taken, dropped + waiting)
                self.assertEqual(server.get("/api/status")[0], 200)

    def test_tls_takes_the_authority_that_is_named_and_no_other(self):
        need(self, "openssl")
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            certificate = otlp_receivers.make_certificate(folder)
            with self.RECEIVER(certificate=certificate) as receiver:
                with self.server(receiver, "--otlp-ca", certificate[0]) as server:
                    receiver.await_requests(3)
                    self.assert_counted(server, receiver)
                received = len(receiver.requests)
                with self.server(receiver) as server:
                    self.assertGreaterEqual(server.await_metric(1, REQUESTS, 'result="failed"'), 1)
                self.assertEqual(len(receiver.requests), received)


class GrpcPushTest(PushTest):
    """The same over gRPC."""

    RECEIVER = otlp_receivers.GrpcReceiver
    SCHEME = "grpc"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if harness.python_with("grpc") is None:
            if harness.REQUIRE_LIVE:
                raise AssertionError("no Python with grpc: install python3-grpcio")
            raise unittest.SkipTest("no Python with grpc: install python3-grpcio")


class HttpAnswersTest(unittest.TestCase):
    def test_an_answer_without_an_end_is_left_and_counted(self):
        with otlp_receivers.HttpReceiver("endless") as receiver, PushTest.server(receiver) as server:
            receiver.await_requests(4)
            self.assertEqual(server.await_metric(1, REQUESTS, 'result="unreadable"'), 1)
            self.assertEqual(len({request.message for request in receiver.requests}), len(receiver.requests), "it is not sent again")
            self.assertLess(server.resident_bytes(), 200 << 20)


if __name__ == "__main__":
    harness.main()
