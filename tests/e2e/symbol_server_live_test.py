#!/usr/bin/env python3
"""Symbols from servers: both protocols, the cache, and every way in which a server can be wrong, slow or hostile."""
import os
import re
import shutil
import subprocess
import tempfile

import folded
import harness
import runtimes
import symbol_servers
from symbol_servers import Server

SPINNER = os.environ.get("SPINNER", os.path.join(os.path.dirname(harness.MINIJIT), "spinner", "spinner"))
LIBRARY = os.path.join(os.path.dirname(SPINNER), "libspin.so")
SYMBOLS = os.path.join(os.path.dirname(SPINNER), "symbols")
NO_PROXY = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}


class SymbolServerTest(harness.LiveTest):
    @classmethod
    def check_needs(cls):
        super().check_needs()
        if not os.access(SPINNER, os.X_OK):
            raise harness.Missing(f"no program at {SPINNER}; build it, or name it in SPINNER")

    def setUp(self):
        self.id = symbol_servers.build_id(LIBRARY)
        with open(os.path.join(SYMBOLS, "libspin.so.dbg"), "rb") as f:
            self.debug = f.read()
        with open(os.path.join(SYMBOLS, "libspin.so"), "rb") as f:
            self.whole = f.read()
        self.cache = tempfile.mkdtemp(prefix="clrsampler-cache-")
        self.addCleanup(shutil.rmtree, self.cache, True)

    def run_agent(self, *servers, options=(), seconds=5, end=None):
        """Samples the spinner, which by itself would run for `seconds`."""
        arguments = ["--frequency", "499", "--symbol-cache", self.cache, *options]
        for server in servers:
            arguments += ["--symbol-server", server]
        if end:
            arguments += ["--duration", end]
        result = harness.record(*arguments, "--", SPINNER, str(seconds), env=NO_PROXY)
        self.check_result(result, minimum_samples=100)
        self.check_account_text(result)
        # Nothing of the fetching stays, whatever became of it.
        self.assertEqual([name for name in os.listdir(self.cache) if name.startswith("work-")], [])
        return result

    def check_named(self, result):
        """Every sample in the library has its functions by name: those too that were taken before the file came."""
        profile = result.profile
        self.assertGreater(profile.with_frame(lambda f: f.endswith("StirSlowly")), 0.9 * profile.total, result.out)
        chains = sum(count for frames, count in profile.stacks
                     if [folded.bare(f).rsplit("::", 1)[-1] for f in frames][-3:] == ["spin", "StirTwice", "StirSlowly"])
        self.assertGreater(chains, 0.9 * profile.total, result.out)
        self.assertNotIn(b"libspin.so!0x", result.out)
        self.assertNotIn("libspin.so!0x", str(result.stats["frames"]["unnamed_reasons"]))

    def check_by_start(self, result):
        """No symbols, and so nothing but the functions' places: one frame for each."""
        profile = result.profile
        starts = {f for frames, _ in profile.stacks for f in frames if re.fullmatch(r"libspin\.so!0x[0-9a-f]+", f)}
        self.assertGreaterEqual(len(starts), 2, result.out)
        self.assertEqual(profile.with_frame(lambda f: f.endswith("StirSlowly")), 0, result.out)

    def notices(self, result):
        return {notice["kind"]: notice["message"] for notice in result.stats["notices"]}

    def test_debuginfod_and_then_the_cache(self):
        with Server({symbol_servers.debuginfod_path(self.id): self.debug}) as server:
            result = self.run_agent("debuginfod+" + server.url)
            self.check_named(result)
            counts = result.stats["symbol_server"]
            self.assertEqual(counts["fetched"], 1, counts)
            self.assertEqual(counts["fetched_bytes"], len(self.debug), counts)
            self.assertIn(symbol_servers.debuginfod_path(self.id), server.requests)
            self.assertTrue(all(path.startswith("/buildid/") for path in server.requests), server.requests)
            url = server.url
        result = self.run_agent("debuginfod+" + url)  # it is gone
        self.check_named(result)
        self.assertEqual(result.stats["symbol_server"]["from_cache"], 1)
        self.assertEqual(result.stats["symbol_server"]["late_names"], 0)

    def test_ssqp(self):
        with Server({"/symbols" + symbol_servers.ssqp_debug_path(self.id): self.debug}) as server:
            result = self.run_agent(f"ssqp+{server.url}/symbols/")
            self.check_named(result)
            self.assertEqual(result.stats["symbol_server"]["fetched"], 1)
            self.assertTrue(all(path.startswith("/symbols/") for path in server.requests), server.requests)

    def test_ssqp_with_the_image_before_it_was_stripped(self):
        with Server({symbol_servers.ssqp_image_path("libspin.so", self.id): self.whole}) as server:
            self.check_named(self.run_agent("ssqp+" + server.url))

    def test_samples_from_before_the_file_came_are_named_at_the_end(self):
        # The answer waits until the profiler must have seen samples; both protocols are tried at one address.
        def wait_a_second(handler, path):
            server.released.wait(1)
            return False

        with Server({symbol_servers.ssqp_debug_path(self.id): self.debug}, wait_a_second) as server:
            result = self.run_agent(server.url, seconds=6)
        self.check_named(result)
        self.assertGreaterEqual(result.stats["symbol_server"]["late_names"], 2, result.stats["symbol_server"])

    def test_absence_is_remembered(self):
        with Server() as server:
            first = self.run_agent(server.url)
            self.check_by_start(first)
            self.assertGreaterEqual(first.stats["symbol_server"]["missing"], 1)
            mine = [path for path in server.requests if self.id in path]
            self.assertEqual(len(mine), 3, server.requests)
            second = self.run_agent(server.url)
            self.assertEqual([path for path in server.requests if self.id in path], mine, "asked again")
            self.assertGreaterEqual(second.stats["symbol_server"]["missing"], 1)
        self.assertEqual(self.notices(second), {}, "that a server lacks a file is nothing to complain of")

    def test_a_second_server_is_asked_when_the_first_is_down(self):
        with Server({symbol_servers.ssqp_debug_path(self.id): self.debug}) as server:
            self.check_named(self.run_agent("ssqp+" + symbol_servers.closed_port(), server.url))

    def test_server_down(self):
        result = self.run_agent(symbol_servers.closed_port())
        self.check_by_start(result)
        counts = result.stats["symbol_server"]
        self.assertEqual(counts["failed"], counts["wanted"], counts)
        self.assertIn("no symbols for ", self.notices(result)["symbol_server_failed"])
        self.assertEqual(result.stats["notice_counts"]["symbol_server_failed"], counts["failed"])
        self.assertEqual(len(result.stats["notices"]), 1, result.stats["notices"])

    # The server answers only when the test is over: that the run ends at all shows that it waits for nobody.
    def check_hanging(self, prefix):
        with Server(behave=lambda handler, path: server.hang(handler, path)) as server:
            result = self.run_agent(prefix + server.url, seconds=60, end="2s")
            self.assertFalse(server.released.is_set())
        self.check_by_start(result)
        self.assertGreaterEqual(result.stats["symbol_server"]["unfinished"], 1)
        self.assertIn("had not come", self.notices(result)["symbol_files_unfinished"])
        self.assertLess(result.stats["duration_seconds"], 30, "of 60 that the spinner has")

    def test_hanging_debuginfod_server(self):
        self.check_hanging("debuginfod+")

    @harness.in_matrix
    def test_hanging_ssqp_server(self):
        self.check_hanging("ssqp+")

    def check_wrong_build(self, prefix, path):
        at = self.debug.index(bytes.fromhex(self.id))
        wrong = self.debug[:at] + bytes([self.debug[at] ^ 1]) + self.debug[at + 1:]
        with Server({path: wrong}) as server:
            result = self.run_agent(prefix + server.url)
        self.check_by_start(result)
        self.assertEqual(result.stats["symbol_server"]["rejected"], 1, result.stats["symbol_server"])
        self.assertEqual(result.stats["symbol_server"]["fetched"], 0)
        message = self.notices(result)["symbol_file_rejected"]
        self.assertIn("libspin.so", message)
        self.assertEqual([name for name in os.listdir(self.cache) if name.endswith(".debug")], [])

    @harness.in_matrix
    def test_wrong_build_from_debuginfod(self):
        self.check_wrong_build("debuginfod+", symbol_servers.debuginfod_path(self.id))

    def test_wrong_build_from_ssqp(self):
        self.check_wrong_build("ssqp+", symbol_servers.ssqp_debug_path(self.id))

    def check_endless(self, prefix):
        with Server(behave=lambda handler, path: server.endless(handler, path)) as server:
            result = self.run_agent(prefix + server.url, options=("--symbol-cache-size", "4MiB"), seconds=8)
            self.assertTrue(server.broken_off.wait(60), "the transfer was cut off")
        self.check_by_start(result)
        self.assertGreaterEqual(result.stats["symbol_server"]["failed"], 1, result.stats["symbol_server"])
        self.assertLessEqual(sum(entry.stat().st_size for entry in os.scandir(self.cache)), 4 << 20)

    @harness.in_matrix
    def test_endless_answer_of_debuginfod(self):
        self.check_endless("debuginfod+")

    def test_endless_answer_of_ssqp(self):
        self.check_endless("ssqp+")

    def test_redirects_without_end(self):
        with Server(behave=Server.redirect_loop) as server:
            result = self.run_agent("ssqp+" + server.url)
            mine = [path for path in server.requests if self.id in path]
        self.check_by_start(result)
        self.assertGreaterEqual(result.stats["symbol_server"]["failed"], 1)
        self.assertLessEqual(len(mine), 2 * 6, "five redirects for each of the two places")

    @harness.in_matrix
    def test_redirects_without_end_from_debuginfod(self):
        with Server(behave=Server.redirect_loop) as server:
            result = self.run_agent("debuginfod+" + server.url)
        self.check_by_start(result)
        counts = result.stats["symbol_server"]
        self.assertGreaterEqual(counts["failed"] + counts["unfinished"], 1, counts)

    def test_a_server_of_another_kind(self):
        def sorry(handler, path):
            handler.send_response(200)
            handler.end_headers()
            handler.wfile.write(b"<html>please sign in</html>")
            return True

        with Server(behave=sorry) as server:
            result = self.run_agent(server.url)
        self.check_by_start(result)
        self.assertGreaterEqual(result.stats["symbol_server"]["rejected"], 1)

    def test_addresses_and_caches_that_can_not_work(self):
        for arguments, mention in ((("--symbol-server", "ftp://host"), "https"),
                                   (("--symbol-server", "https://user:word@host"), "password"),
                                   (("--symbol-server", "https://host", "--symbol-cache", "/proc/nowhere"), "--symbol-cache"),
                                   (("--symbol-cache-size", "1B"), "500MiB")):
            result = harness.record(*arguments, "--duration", "1s", output=False)
            self.assertIn(result.status, (1, 2), result)
            self.assertIn("error: ", result.err)
            self.assertIn("hint: ", result.err)
            self.assertIn(mention, result.err)


class RuntimeSymbolsTest(harness.LiveTest):
    """The runtime itself, which ships without symbols. Its file on Microsoft's server can't be had here, so its debug file is
    made from the real image: same build-id, and a symbol at each function that a first run has met."""

    NEEDS = ("dotnet", "objcopy")

    def record(self, *options):
        with harness.workload(runtimes.INSTALLED, "mix", "--seconds", 120, "--threads", 2, perf_map=3) as target:
            with open(f"/proc/{target.host_pid}/maps") as maps:
                self.library = next(line.split()[-1] for line in maps if line.rstrip().endswith("/libcoreclr.so"))
            result = harness.record("--pid", str(target.host_pid), "--duration", "6s", "--frequency", "499", *options, env=NO_PROXY)
        self.check_result(result, minimum_samples=300)
        return result

    @staticmethod
    def starts(result):
        """Functions of libcoreclr.so that are known by their start -> samples' frames."""
        found = {}
        for frames, count in result.profile.stacks:
            for frame in frames:
                if frame.startswith("libcoreclr.so!0x"):
                    found[int(frame.partition("!")[2], 16)] = found.get(int(frame.partition("!")[2], 16), 0) + count
        return found

    def make_debug_file(self, folder, starts):
        plain, named, symbols = (os.path.join(folder, name) for name in ("plain.dbg", "named.dbg", "symbols"))
        subprocess.run(["objcopy", "--only-keep-debug", self.library, plain], check=True)
        sections = subprocess.run(["readelf", "-SW", self.library], check=True, capture_output=True, text=True).stdout
        text = int(re.search(r"\.text +PROGBITS +([0-9a-f]+)", sections).group(1), 16)
        with open(symbols, "w") as f:
            for start in starts:
                if start >= text:
                    f.write(f"--add-symbol clr_{start:x}=.text:{start - text:#x},function,global\n")
        subprocess.run(["objcopy", f"@{symbols}", plain, named], check=True)
        with open(named, "rb") as f:
            return f.read()

    def test_the_runtimes_own_functions(self):
        first = self.record()
        starts = self.starts(first)
        self.assertGreater(len(starts), 20, first)
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            debug = self.make_debug_file(folder, starts)
            path = symbol_servers.ssqp_debug_path(symbol_servers.build_id(self.library))

            def wait_a_second(handler, asked):
                return asked == path and server.released.wait(1)  # so that there are samples from before

            with Server({path: debug}, wait_a_second) as server:
                second = self.record("--symbol-server", "ssqp+" + server.url, "--symbol-cache", os.path.join(folder, "cache"))
        self.assertGreaterEqual(second.stats["symbol_server"]["fetched"], 1, second.stats["symbol_server"])
        self.assertGreaterEqual(second.stats["symbol_server"]["late_names"], 1, second.stats["symbol_server"])
        # A name may stand for its own function only: no frame with one is left by its start, and most are the same ones.
        nameless = self.starts(second)
        self.assertEqual(sorted(set(nameless) & set(starts)), [])
        named = {}
        for frames, count in second.profile.stacks:
            for frame in frames:
                if frame.startswith("clr_"):
                    named[int(frame[4:], 16)] = named.get(int(frame[4:], 16), 0) + count
        self.assertLessEqual(set(named), set(starts))
        # The same work twice: what was met by its start is now met by its name.
        self.assertGreater(sum(named.values()), 0.5 * sum(starts.values()) * second.profile.total / first.profile.total)
        self.assertLess(sum(nameless.values()), 0.2 * sum(named.values()), "the functions that only the second run met")


if __name__ == "__main__":
    harness.main()
