#!/usr/bin/env python3
"""1,000 clients that ask `clrsampler serve` all the time do not disturb its sampling.

As many of the expected samples are taken as without them, none is lost, windows come in time, and the loop that samples turns as before. Both
are measured in one run, one after the other.

CLRSAMPLER_CLIENTS (1000), CLRSAMPLER_CLIENT_SECONDS (10): how many, and how long each half takes. It prints what it measures;
docs/measurements/2026-11-26-service.md has the figures of a longer run."""
import asyncio
import collections
import os
import resource
import tempfile
import threading
import time

import harness
import runtimes
from service import Manager, Service

CLIENTS = int(os.environ.get("CLRSAMPLER_CLIENTS", "1000"))
SECONDS = float(os.environ.get("CLRSAMPLER_CLIENT_SECONDS", "10"))
TARGETS = ("/metrics", "/", "/api/status", "/api/timeline?from=-10s", "/api/profile?from=-10s&format=page", "/api/health?from=-10s")


class Clients(threading.Thread):
    """Each asks, waits for the answer, and asks for the next thing, over one connection as long as the server keeps it."""

    def __init__(self, service):
        super().__init__(daemon=True)
        self.address = service.address
        self.fields = "".join(f"{name}: {value}\r\n" for name, value in {"Host": "localhost", **service.headers}.items())
        self.answers = collections.Counter()
        self.most_at_once = self.connected = 0

    def run(self):
        asyncio.run(self.ask_all())

    async def ask_all(self):
        self.loop, self.over = asyncio.get_running_loop(), asyncio.Event()
        clients = [asyncio.create_task(self.ask(i)) for i in range(CLIENTS)]
        await self.over.wait()
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

    async def ask(self, number):
        while True:
            try:
                reader, writer = await asyncio.open_connection(*self.address)
            except OSError:
                self.answers["refused"] += 1
                await asyncio.sleep(0.1)
                continue
            self.connected += 1
            self.most_at_once = max(self.most_at_once, self.connected)
            try:
                while True:
                    writer.write(f"GET {TARGETS[number % len(TARGETS)]} HTTP/1.1\r\n{self.fields}\r\n".encode())
                    number += 1
                    head = await reader.readuntil(b"\r\n\r\n")
                    fields = dict(line.lower().split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:] if ": " in line)
                    await reader.readexactly(int(fields["content-length"]))
                    self.answers[head.split()[1].decode()] += 1
                    if fields.get("connection") == "close":
                        break
                    await asyncio.sleep(0.05)
            except (OSError, asyncio.IncompleteReadError):
                self.answers["ended"] += 1
                await asyncio.sleep(0.05)
            finally:
                self.connected -= 1
                writer.close()

    def stop(self):
        self.loop.call_soon_threadsafe(self.over.set)
        self.join(30)


class Turns:
    """When the loop that samples has said that it turns, about once a second: by the kernel's clock, since this program is busy with its clients."""

    def __init__(self, manager):
        self.manager = manager
        self.begin = time.time()

    def longest(self):
        """Seconds between two."""
        times = [at for at, text in list(self.manager.sent) if "WATCHDOG=1" in text and at >= self.begin]
        return max((b - a for a, b in zip(times, times[1:])), default=float("inf"))


class ClientsTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def test_clients_do_not_disturb_sampling(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            manager = Manager(folder)
            self.addCleanup(manager.socket.close)
            with Service("--frequency", 99, env={**manager.env, "WATCHDOG_USEC": "60000000"}) as service, \
                    harness.workload(runtimes.INSTALLED, "split", "--seconds", 600):
                service.wait_for_windows(2)
                alone = self.half(service, manager, None)
                with_clients = self.half(service, manager, Clients(service))
                for name, one in (("alone", alone), (f"{CLIENTS} clients", with_clients)):
                    print(f"    {name}: {one}", flush=True)
                self.assertEqual(with_clients["lost"], 0)
                self.assert_within(abs(with_clients["coverage"] / alone["coverage"] - 1), 0.05 + alone["stolen"] + with_clients["stolen"],
                                   "share of the expected samples")
                self.assertLess(with_clients["longest_turn"], 3 * alone["longest_turn"] + 1, "the loop turns")
                self.assertLess(with_clients["window_late"], alone["window_late"] + 10)
                self.assertGreater(with_clients["at_once"], 0.9 * CLIENTS)
                self.assertGreater(with_clients["answers"]["200"], CLIENTS)
                self.assertEqual(service.json("/api/status")["frequency_hz"], 99, "no load was shed")
                self.assertEqual(service.stop(), 0)

    def half(self, service, manager, clients):
        before, turns = self.health(service, None), Turns(manager)
        begin, steal = before["to"], harness.steal_seconds()
        if clients:
            clients.start()
        time.sleep(SECONDS)
        found = {"longest_turn": round(turns.longest(), 2)}
        if clients:
            clients.stop()
            found.update(at_once=clients.most_at_once, answers=dict(clients.answers))
        newest = self.ask(service, "/api/status")["newest"]
        steal = harness.steal_seconds() - steal
        found["window_late"] = round(time.time() - newest / 1000, 2)
        # Whole windows, and none but those of this half.
        after = self.health(service, begin)
        samples = after["samples"]
        found["stolen"] = round(steal * 99 / samples["expected"], 4)
        return {"coverage": round(samples["taken"] / samples["expected"], 4), "taken": samples["taken"], "lost": sum(after["lost"].values()), **found}

    def health(self, service, begin_ms):
        newest = self.ask(service, "/api/status")["newest"]
        if begin_ms is None:
            return {"to": newest}
        return self.ask(service, "/api/health", **{"from": begin_ms / 1000, "to": newest / 1000 - 0.001})

    @staticmethod
    def ask(service, path, **parameters):
        """As soon as the questions before it are paid for."""
        return service.json(path, **parameters)


if __name__ == "__main__":
    harness.main()
