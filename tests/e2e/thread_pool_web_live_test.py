#!/usr/bin/env python3
"""`clrsampler threadpool` on an ASP.NET service under `wrk`: starved by sync over async, and not where its requests compute or await.

CLRSAMPLER_HEALTHY_SECONDS: for how long a busy healthy service is watched, 60 by default."""
import json
import os
import subprocess

import harness
import runtimes

VERSIONS = runtimes.PACKED_VERSIONS if runtimes.MATRIX else (runtimes.PACKED_VERSIONS[-1],)
HEALTHY_SECONDS = int(os.environ.get("CLRSAMPLER_HEALTHY_SECONDS", "60"))
WATCHED_SECONDS = 4


class Service:
    def __init__(self, version):
        command, additions = runtimes.command(version, "serve", "--seconds", "100000", program="web")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **additions})
        self.address = self.process.stdout.readline().split()[2]
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


class Load:
    """Requests of 64 clients at a path, for as long as the block lasts."""

    def __init__(self, address, path, clients=64):
        self.process = subprocess.Popen(["wrk", "-t2", f"-c{clients}", "-d100000", address + path], stdout=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class ThreadPoolWebTest(harness.LiveTest):
    NEEDS = ("dotnet", "wrk")

    def verdict(self, service):
        done = subprocess.run([harness.AGENT, "threadpool", "--pid", str(service.pid), "-d", f"{WATCHED_SECONDS}s", "--json"],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_sync_over_async_starves_the_pool(self):
        for version in VERSIONS:
            with self.subTest(version), Service(version) as service, Load(service.address, "/blocking/7"):
                pool = self.verdict(service)
                print(f"  {version}: {pool}", flush=True)
                self.assertTrue(pool["starved"], pool)
                self.assertEqual((pool["sites"][0]["kind"], pool["sites"][0]["method"]), ("task wait", "Web.Program.FindAndBlock"))

    def test_a_busy_healthy_service_is_never_called_starved(self):
        for version in VERSIONS:
            for path, clients in (("/basket/7", 64), ("/awaiting/7", 64), ("/basket/7", 2)):
                with self.subTest(version, path=path, clients=clients), Service(version) as service, Load(service.address, path, clients):
                    for _ in range(max(1, HEALTHY_SECONDS // 3 // WATCHED_SECONDS)):
                        pool = self.verdict(service)
                        self.assertFalse(pool["starved"], pool)
                        self.assertGreater(pool["workers"], 0)


if __name__ == "__main__":
    harness.main()
