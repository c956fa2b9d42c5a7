#!/usr/bin/env python3
"""clrsampler serve --otlp on this host: requests keep the format's rules, and their samples are those that the service says it has written."""
import os
import signal
import subprocess
import sys
import tempfile
import time

import harness
import otlp_receivers
from service import Service

SAMPLES = "clrsampler_otlp_samples_total"
WINDOWS = int(os.environ.get("CLRSAMPLER_OTLP_WINDOWS", "10"))
SERVICES = 50
# Busy for 5 ms in 250: fifty of them take a processor, and each has a sample in a second or two at 99 Hz.
PROGRAM = """
import time
while True:
    end = time.monotonic() + 0.005
    while time.monotonic() < end:
        pass
    time.sleep(0.245)
"""


class Host:
    """Small programs, each with a name of its own: that of the link by which it was started."""

    def __init__(self, count):
        self.folder = tempfile.TemporaryDirectory(prefix="clrsampler-test-")
        self.names = [f"service-{i:02}" for i in range(count)]
        self.processes = []
        for name in self.names:
            os.symlink(os.path.realpath(sys.executable), path := os.path.join(self.folder.name, name))
            self.processes.append(subprocess.Popen([path, "-S", "-c", PROGRAM], stdin=subprocess.DEVNULL,
                                                   env={**os.environ, "PYTHONHOME": sys.base_prefix}))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        self.folder.cleanup()


class ServeOtlpTest(harness.LiveTest):
    RECEIVER = otlp_receivers.HttpReceiver

    def serve(self, receiver, *options):
        return Service("--frequency", 99, "--otlp", receiver.url, *options, window="1s")

    def account(self, service):
        """(taken, sent, dropped, waiting), of one look at the metrics in which they add up: a look may fall between two counts."""
        end = time.monotonic() + 60
        while True:
            metrics = service.metrics()
            taken, sent, dropped = (service.sum(SAMPLES, metrics, result=result) for result in ("taken", "sent", "dropped"))
            waiting = service.sum("clrsampler_otlp_waiting_samples", metrics)
            if taken == sent + dropped + waiting:
                return taken, sent, dropped, waiting
            self.assertLess(time.monotonic(), end, f"taken {taken}, sent {sent}, dropped {dropped}, waiting {waiting}\n{service.said()}")

    def assert_all_arrived(self, service, receiver, dropped=0):
        """Between two windows all that was written is at the receiver, or was dropped: `dropped` samples. Gives what was taken and sent."""
        end = time.monotonic() + 90
        while True:
            received = receiver.taken_samples()
            metrics = service.metrics()
            written = service.sum("clrsampler_samples_written_total", metrics)
            taken, sent, lost = (service.sum(SAMPLES, metrics, result=result) for result in ("taken", "sent", "dropped"))
            if (written, sent, lost, taken) == (taken, received, dropped, sent + lost):
                return taken, sent
            self.assertLess(time.monotonic(), end, f"written {written}, received {received}, taken {taken}, sent {sent}, dropped {lost}\n{service.said()}")

    def test_requests_keep_the_rules_and_have_every_sample(self):
        with Host(SERVICES) as host, self.RECEIVER() as receiver, self.serve(receiver, "--waits") as service:
            receiver.await_requests(WINDOWS, seconds=60 + 3 * WINDOWS)
            taken, sent = self.assert_all_arrived(service, receiver)
            self.assertEqual(service.sum("clrsampler_otlp_dropped_total"), 0)
            requests = list(receiver.requests)
        self.assertEqual([finding for request in requests for finding in request.checked.findings], [])
        self.assertGreater(sent, 20 * WINDOWS)
        services = set().union(*(request.services() for request in requests))
        # A program that is busy for a fiftieth of the time is seen at 99 Hz in ten seconds but with a probability of 2 in 10 ** 9.
        self.assertLessEqual(set(host.names), services)
        kinds = {kind for request in requests for kind, _ in request.values()}
        self.assertLessEqual({("samples", "count"), ("off_cpu", "nanoseconds")}, kinds)
        for profile in (profile for request in requests for _, profiles in request.checked.profiles.resources for profile in profiles):
            # That these lie within the window is a rule, and the checker knows it.
            self.assertEqual({bool(sample["times"]) for sample in profile["samples"]}, {profile["type"] == ("samples", "count")})
        sizes = sorted(len(request.message) for request in requests)
        print(f"{len(requests)} requests with {len(services)} services: 0 findings; {int(sent)} samples sent of {int(taken)} taken; "
              f"{sizes[len(sizes) // 2]} bytes in the middle, {sizes[-1]} at most", file=sys.stderr)

    def test_a_bad_server_gets_all_that_the_bounds_allow(self):
        manners = ("again", "take", "down", "partial", "slow", "garbage", "again", "refuse", "slow", "down", "take", "refuse")
        with Host(5), self.RECEIVER(*manners) as receiver, self.serve(receiver) as service:
            receiver.await_requests(len(manners) + 5)
            refused = sum(request.samples() for request in receiver.requests if request.manner == "refuse")
            self.assertGreater(refused, 0)
            self.assert_all_arrived(service, receiver, dropped=refused)
            metrics = service.metrics()
            self.assertEqual(service.sum("clrsampler_otlp_dropped_total", metrics), 2)
            self.assertEqual(service.sum("clrsampler_otlp_dropped_total", metrics, reason="refused"), 2)
            self.assertEqual(service.sum("clrsampler_otlp_rejected_profiles_total", metrics), 1)
            self.assertEqual(service.sum("clrsampler_otlp_requests_total", metrics, result="failed"), 4)
            self.assertEqual(service.sum("clrsampler_otlp_requests_total", metrics, result="unreadable"), 1)
        self.assertEqual(receiver.findings(), [])

    def test_a_server_that_hangs_keeps_nothing_from_ending(self):
        with Host(2), self.RECEIVER(*["hang"] * 100) as receiver, self.serve(receiver) as service:
            receiver.await_requests(1)
            service.wait_for_windows(3)
            taken, sent, dropped, waiting = self.account(service)
            self.assertEqual((sent, dropped), (0, 0))
            self.assertGreater(waiting, 0)
            begin = time.monotonic()
            self.assertEqual(service.stop(signal.SIGTERM), 0, service.said())
            self.assertLess(time.monotonic() - begin, 20)
            self.assertEqual(taken, waiting)


class ServeOtlpGrpcTest(ServeOtlpTest):
    """The same over gRPC."""

    RECEIVER = otlp_receivers.GrpcReceiver

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if harness.python_with("grpc") is None:
            cls.unavailable("no Python with grpc: install python3-grpcio")

    @harness.in_matrix
    def test_a_bad_server_gets_all_that_the_bounds_allow(self):
        super().test_a_bad_server_gets_all_that_the_bounds_allow()

    @harness.in_matrix
    def test_a_server_that_hangs_keeps_nothing_from_ending(self):
        super().test_a_server_that_hangs_keeps_nothing_from_ending()


class ServeOtlpTlsTest(harness.LiveTest):
    NEEDS = ("openssl",)

    def test_the_authority_is_read_in_the_sandbox(self):
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            certificate = otlp_receivers.make_certificate(folder)
            with Host(2), otlp_receivers.HttpReceiver(certificate=certificate) as receiver, \
                    Service("--otlp", receiver.url, "--otlp-ca", certificate[0], window="1s") as service:
                receiver.await_requests(2)
                self.assertNotIn("can't be sent", service.said())
        self.assertEqual(receiver.findings(), [])


if __name__ == "__main__":
    harness.main()
