"""Compares what tests/apps/workload's mode `events` says it did with the events of a watcher."""
import collections

COUNT, MEGABYTES = 300, 64
PAGE_BYTES = 4096
COMMON = {"time_ns": int, "pid": int, "thread": int, "event": str, "source": str}


def check(test, version, truth, events, said, pid, count=COUNT, megabytes=MEGABYTES):
    test.assertNotIn("lost", said)
    by_kind = collections.defaultdict(list)
    for event in events:
        for field, kind in COMMON.items():
            test.assertIsInstance(event[field], kind, event)
        test.assertEqual((event["pid"], event["source"]), (pid, "eventpipe"))
        by_kind[event["event"]].append(event)
    thrown = by_kind["ExceptionThrown"]
    test.assertEqual(collections.Counter(event["type"] for event in thrown),
                     {"System.InvalidOperationException": count, "OutOfStock": count})
    test.assertEqual([event["message"] for event in thrown[::2]], [f"order {i}" for i in range(count)])
    test.assertEqual({event["thread"] for event in thrown}, {pid})
    for kind, expected in (("ExceptionCatcherEnter", 2 * count), ("ExceptionSearchFilterEnter", count), ("ExceptionSearchFilterLeave", count),
                           ("ExceptionUnwindFinallyEnter", count), ("ExceptionUnwindFinallyLeave", count)):
        test.assertEqual(len(by_kind[kind]), expected, kind)
    created = collections.Counter(event["tid"] for event in by_kind["ThreadCreated"])
    test.assertEqual({tid: created[tid] for tid in truth["threads"]}, {tid: 1 for tid in truth["threads"]})
    for kind in ("ModuleLoadFinished", "ModuleUnloadFinished"):
        test.assertEqual([event["path"].startswith("zoo") for event in by_kind[kind]], [True] * truth["modules"])
    for kind in ("GarbageCollectionStarted", "GarbageCollectionFinished"):
        test.assertEqual(len(by_kind[kind]), truth["collections"])
    # The program's own suspensions stand around its collections.
    suspensions = [by_kind[f"Runtime{what}"] for what in ("SuspendStarted", "SuspendFinished", "ResumeStarted", "ResumeFinished")]
    test.assertEqual(len({len(one) for one in suspensions}), 1)
    test.assertEqual(sum(event["reason"] == "gc" for event in suspensions[0]), truth["collections"])
    # The program makes each of its threads wait for 100 ms; others may wait for locks of the runtime.
    waits = {event["thread"] for event in by_kind["ThreadAcquiredMonitor"] if event["duration_ns"] > 50_000_000}
    test.assertEqual(len(waits & set(truth["threads"])), truth["blocked"])
    compiled = by_kind["JITCompilationFinished"]
    test.assertEqual(len(compiled), truth["compiled"])
    test.assertEqual(sum(event["method"].startswith("Fresh") for event in compiled), truth["methods"])
    ticks = by_kind["ObjectAllocated"]
    # A tick comes when 100 KiB and what a thread gets at once are full, so what is left over is less than two.
    test.assert_within(abs(sum(event["bytes"] for event in ticks) - truth["allocated"]), 220_000, "allocated bytes")
    pages = sum(event["bytes"] for event in ticks if event["type"] == "Page")
    test.assert_within(abs(pages / (megabytes * 256 * PAGE_BYTES) - 1), 0.05, "bytes by type")
    print(f"    {version}: {dict(collections.Counter(event['event'] for event in events))}", flush=True)
