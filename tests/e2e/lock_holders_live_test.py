#!/usr/bin/env python3
"""`clrsampler stacks` says which lock each thread waits for and who holds it, and which threads wait for each other
(tests/apps/waits/Deadlocks.cs). Threads that give up after some time are not among the latter."""
import json
import os
import subprocess
import time

import harness
import runtimes
from waits_program import Program

VERSIONS = runtimes.PACKED_VERSIONS + (runtimes.LATER_VERSIONS if runtimes.MATRIX else ())
# By name of the thread: the type whose monitor it waits for, the thread that holds that, and how often it does.
WAITS = {
    "stock keeper": ("Waits.Ledger", "book keeper", 1),
    "book keeper": ("Waits.Stock", "stock keeper", 1),
    "customer": ("Waits.Stock", "stock keeper", 1),
    "writer": ("Waits.Shelf<string>", "reader", 2),
}
LOCK_WAITS = {"lock waiter": ("System.Threading.Lock", "lock keeper", 1)}
METHODS = {"stock keeper": "Waits.Deadlocks.WritesDown", "book keeper": "Waits.Deadlocks.CountsItems"}
# How long threads may take until they stand where they will stay.
SETTLED_SECONDS = 60
LOOKS = 20


def look(pid, *arguments):
    done = subprocess.run([harness.AGENT, "stacks", "--pid", str(pid), *arguments], stdout=subprocess.PIPE, check=True, text=True, timeout=120)
    return done.stdout


def threads_of(pid):
    return [json.loads(line) for line in look(pid, "--json").splitlines()]


def told(threads):
    """The locks that each thread waits for, by names of threads."""
    names = {thread["tid"]: thread["comm"] for thread in threads}
    waits = {}
    for thread in threads:
        wait = thread.get("waits_for")
        if wait is None:
            continue
        waits[thread["comm"]] = (wait.get("type") or wait["lock"], names.get(wait.get("holder")), wait.get("entered"))
    return waits


class LockHoldersTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def test_each_thread_that_waits_has_the_holder_and_no_other_has_one(self):
        for version in VERSIONS:
            expected = {**WAITS, **(LOCK_WAITS if int(version.split(".")[0]) >= 9 else {})}
            with self.subTest(version), Program(version, "deadlock") as program:
                deadline = time.monotonic() + SETTLED_SECONDS
                while True:
                    threads = threads_of(program.pid)
                    waits = told(threads)
                    by_name = {thread["comm"]: thread for thread in threads}
                    # "visitor" waits for a moment, and then it sleeps.
                    if {name for name in waits if name != "visitor"} == set(expected) and "visitor" not in waits:
                        break
                    self.assertLess(time.monotonic(), deadline, waits)
                print(f"  {version}: {waits}", flush=True)
                self.assertEqual(waits, expected)
                self.assertEqual([thread["comm"] for thread in threads if thread.get("waits_for", {}).get("limited")], [])
                pair = sorted(by_name[name]["tid"] for name in ("stock keeper", "book keeper"))
                circles = {name: sorted(thread["deadlock"]) for name, thread in by_name.items() if "deadlock" in thread}
                self.assertEqual(circles, {"stock keeper": pair, "book keeper": pair})

    def test_a_deadlock_is_said_in_a_sentence(self):
        for version in runtimes.selected(runtimes.PACKED_VERSIONS):
            with self.subTest(version), Program(version, "deadlock") as program:
                deadline = time.monotonic() + SETTLED_SECONDS
                while not (text := look(program.pid)).startswith("deadlock: "):
                    self.assertLess(time.monotonic(), deadline, text[:2000])
                lines = text.splitlines()
                print("\n".join(lines[:3]), flush=True)
                self.assertIn("wait for each other, and none of them will go on", lines[0])
                for name, method in METHODS.items():
                    kind, holder, _ = WAITS[name]
                    (line,) = [line for line in lines[1:3] if line.startswith(f"  {name} (")]
                    self.assertRegex(line, rf"waits for the monitor of a {kind}, which thread {holder} \(\d+\) holds, in {method}$")

    def test_threads_of_which_one_gives_up_are_not_deadlocked(self):
        """tests/apps/waits/TimeLimits.cs"""
        partner = {"first": "second", "second": "first", "third": "fourth", "fourth": "third"}
        locks = {"fifth": "sixth", "sixth": "fifth"}
        for version in VERSIONS:
            expected = {**partner, **(locks if int(version.split(".")[0]) >= 9 else {})}
            with self.subTest(version), Program(version, "limits", "600000") as program:
                deadline = time.monotonic() + SETTLED_SECONDS
                while True:
                    threads = threads_of(program.pid)
                    if {name: holder for name, (_, holder, _) in told(threads).items()} == expected:
                        break
                    self.assertLess(time.monotonic(), deadline, told(threads))
                self.assertEqual([thread["comm"] for thread in threads if "deadlock" in thread], [])
                limited = {thread["comm"]: thread["waits_for"].get("limited", False) for thread in threads if "waits_for" in thread}
                self.assertEqual(limited, {name: name != "third" for name in expected})

    def test_locks_ends_with_who_holds_what(self):
        version = runtimes.PACKED_VERSIONS[-1]
        expected = {**WAITS, **LOCK_WAITS}
        with Program(version, "deadlock") as program:
            deadline = time.monotonic() + SETTLED_SECONDS
            while True:
                done = subprocess.run([harness.AGENT, "locks", "--pid", str(program.pid), "--duration", "2s", "--json"], stdout=subprocess.PIPE,
                                      check=True, text=True, timeout=120)
                held = json.loads(done.stdout)["held_at_end"]
                names = {int(tid): open(f"/proc/{program.pid}/task/{tid}/comm", encoding="utf-8").read().strip()
                         for tid in os.listdir(f"/proc/{program.pid}/task")}
                waits = {one["comm"]: ((wait := one["waits_for"]).get("type") or wait["lock"], names.get(wait.get("holder")), wait.get("entered"))
                         for one in held}
                if waits == expected:  # the threads stand where they will stay
                    break
                self.assertLess(time.monotonic(), deadline, held)
            self.assertEqual({one["comm"]: one["method"] for one in held if one["comm"] in METHODS}, METHODS)
            self.assertEqual({one["comm"] for one in held if "deadlock" in one}, {"stock keeper", "book keeper"})
            text = subprocess.run([harness.AGENT, "locks", "--pid", str(program.pid), "--duration", "1s"], stdout=subprocess.PIPE,
                                  check=True, text=True, timeout=120).stdout
            end = text[text.index("at the end:\n"):]
            self.assertRegex(end, r"\ndeadlock: the threads ")
            self.assertRegex(end, r"\nthread customer \(\d+\) waits for the monitor of a Waits\.Stock, which thread stock keeper \(\d+\) holds")

    def test_threads_that_hand_a_monitor_to_each_other_are_never_deadlocked(self):
        other = {"owner one": "owner two", "owner two": "owner one"}
        for version in runtimes.selected(runtimes.PACKED_VERSIONS):
            with self.subTest(version), Program(version) as program:
                program.process.stdin.write("600\n")
                program.process.stdin.flush()
                seen = 0
                for _ in range(LOOKS):
                    threads = threads_of(program.pid)
                    self.assertFalse([thread for thread in threads if "deadlock" in thread])
                    for name, (kind, holder, _) in told(threads).items():
                        self.assertIn(name, other)
                        self.assertIn(kind, ("object", "System.Object", "monitor"))
                        self.assertIn(holder, (other[name], None))
                        seen += holder is not None
                print(f"  {version}: {seen} waits in {LOOKS} looks", flush=True)
                # Each waits half of the time for the other.
                self.assertGreater(seen, 0)


if __name__ == "__main__":
    harness.main()
