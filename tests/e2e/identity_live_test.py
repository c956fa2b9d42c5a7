#!/usr/bin/env python3
"""Labels of .NET processes: from their environment, and from the process context that a library in them publishes."""
import json
import os
import subprocess
import tempfile
import time

import harness
import otlp_check
import runtimes
from service import Service

# Loaded into the process by LD_PRELOAD. CONTEXT_MODE: what is wrong with what it publishes.
PUBLISHER = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
struct header { char signature[8]; uint32_t version, size; volatile uint64_t published; uint64_t payload; };
static struct header *shown;
static char payload[4096];
static uint32_t add(char *to, int number, const char *bytes, uint32_t size) {
  to[0] = (char)(number << 3 | 2);
  to[1] = (char)size;
  memcpy(to + 2, bytes, size);
  return size + 2;
}
static uint32_t attribute(char *to, const char *key, const char *value) {
  char text[128], pair[128];
  uint32_t size = add(pair, 1, key, strlen(key));
  size += add(pair + size, 2, text, add(text, 1, value, strlen(value)));
  return add(to, 1, pair, size);
}
static void *change(void *nothing) {
  for (;;) ++shown->published;
  return nothing;
}
__attribute__((constructor)) static void publish(void) {
  const char *mode = getenv("CONTEXT_MODE");
  if (!mode) return;
  int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, 4096)) abort();
  shown = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  close(fd);
  char resource[120];
  uint32_t size = attribute(resource, "service.name", "published-shop");
  size += attribute(resource + size, "k8s.pod.name", "pod-of-another");
  size = add(payload, 1, resource, size);
  memcpy(shown->signature, "OTEL_CTX", 8);
  shown->version = 2;
  shown->size = size;
  shown->payload = (uint64_t)payload;
  if (!strcmp(mode, "huge")) shown->size = 0xffffffff;
  if (!strcmp(mode, "garbage")) memset(payload, 0xff, sizeof payload);
  if (!strcmp(mode, "nowhere")) shown->payload = 0x1000;
  shown->published = 7;
  pthread_t thread;
  if (!strcmp(mode, "changing")) pthread_create(&thread, 0, change, 0);
}
"""


class IdentityTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory(prefix="clrsampler-test-")
        cls.library = os.path.join(cls.folder.name, "libpublisher.so")
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-pthread", "-x", "c", "-", "-o", cls.library], input=PUBLISHER, text=True, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()
        super().tearDownClass()

    def program(self, mode=None):
        env = {"OTEL_SERVICE_NAME": "environment-shop", "POD_NAME": "pod-of-another",
               "OTEL_RESOURCE_ATTRIBUTES": "service.version=1%2E2,deployment.environment=test,service.instance.id=7"}
        if mode:
            env.update(LD_PRELOAD=self.library, CONTEXT_MODE=mode)
        return harness.workload(runtimes.INSTALLED, "mix", "--seconds", 120, env=env)

    def recorded(self, target):
        """The resource that a recording names the process by, and what it said."""
        path = os.path.join(self.folder.name, f"{target.host_pid}.otlp")
        done = subprocess.run([harness.AGENT, "record", "--pid", str(target.host_pid), "--duration", "4s", "-o", path], capture_output=True, text=True, timeout=150)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, "rb") as file:
            checked = otlp_check.Checker(file.read())
        self.assertEqual(checked.findings, [])
        ((attributes, _),) = checked.profiles.resources
        return attributes, done.stderr

    def assert_environment(self, attributes):
        self.assertEqual(attributes["service.name"], "environment-shop")
        self.assertEqual(attributes["service.version"], "1.2")
        self.assertEqual(attributes["deployment.environment.name"], "test")
        self.assertNotIn("service.instance.id", attributes)
        self.assertNotIn("k8s.pod.name", attributes, "it is in no pod")

    def test_the_environment_names_a_process(self):
        with self.program() as target:
            attributes, _ = self.recorded(target)
        self.assert_environment(attributes)

    def test_what_a_process_publishes_names_it(self):
        with self.program("good") as target:
            attributes, said = self.recorded(target)
        self.assertEqual(attributes["service.name"], "published-shop")
        self.assertEqual(attributes["service.version"], "1.2", "the environment knows more")
        self.assertNotIn("k8s.pod.name", attributes)
        self.assertNotIn("process context of process", said)

    def test_a_hostile_publisher_is_a_notice(self):
        for mode in ("huge", "garbage", "nowhere"):
            with self.subTest(mode=mode), self.program(mode) as target:
                attributes, said = self.recorded(target)
                self.assert_environment(attributes)
                self.assertIn(f"the process context of process {target.host_pid} ", said)

    def test_one_that_changes_all_the_time_is_left_alone(self):
        with self.program("changing") as target:
            attributes, _ = self.recorded(target)
        self.assertIn(attributes["service.name"], ("environment-shop", "published-shop"))

    def test_ps_shows_them(self):
        with self.program("good") as target:
            done = subprocess.run([harness.AGENT, "ps", "--json"], capture_output=True, text=True, timeout=150)
            (row,) = [row for row in json.loads(done.stdout)["processes"] if row["pid"] == target.host_pid]
        self.assertEqual(row["labels"]["service.name"], "published-shop")

    def test_the_service_shows_them(self):
        with self.program("good") as target, Service("--frequency", 99, window="1s") as service:
            end = time.monotonic() + 60
            while True:
                rows = [row for row in service.json("/api/processes")["processes"] if row["pid"] == target.host_pid]
                if rows and rows[0]["labels"].get("service.name") == "published-shop":
                    break
                self.assertLess(time.monotonic(), end, f"{rows}\n{service.said()}")
                time.sleep(0.5)
            metrics = service.get("/metrics")[1].decode()
        (line,) = [line for line in metrics.splitlines() if line.startswith("clrsampler_process_info{") and f'pid="{target.host_pid}"' in line]
        self.assertIn('service="published-shop"', line)


if __name__ == "__main__":
    harness.main()
