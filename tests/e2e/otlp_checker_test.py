#!/usr/bin/env python3
"""The checker of OpenTelemetry's profiles itself: it must accept what is right and notice each fault, or the live tests prove nothing."""
import struct
import unittest

import otlp_check


def varint(number):
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(encoded) + bytes([number])


def message(*fields):
    """A message of (number, value): an int, bytes, text, or a list of ints, which is packed."""
    encoded = b""
    for number, value in fields:
        if isinstance(value, int):
            encoded += varint(number << 3) + varint(value)
            continue
        if isinstance(value, list):
            value = b"".join(varint(each) for each in value)
        if isinstance(value, str):
            value = value.encode()
        encoded += varint(number << 3 | 2) + varint(len(value)) + value
    return encoded


STRINGS = ["", "Main", "samples", "count", "thread.id", "a.so", "process.executable.build_id.gnu"]


def times(*when):
    return struct.pack(f"<{len(when)}Q", *when)


def request(strings=None, samples=None, attributes=None, stacks=None, mapping=None, function=None):
    """One sample of Main in a.so; what is given takes the place of what is right."""
    samples = samples or [message((1, 1), (2, [1]), (4, [7]))]
    attributes = attributes or [b"", message((1, 4), (2, message((3, 12)))), message((1, 6), (2, message((1, "c0ffee"))))]
    tables = [*((1, entry) for entry in (b"", mapping or message((4, 5), (5, [2])))),
              *((2, entry) for entry in (b"", message((1, 1), (3, message((1, 1)))))),
              *((3, entry) for entry in (b"", function or message((1, 1)))), (4, b""),
              *((5, text) for text in strings or STRINGS), *((6, entry) for entry in attributes),
              *((7, entry) for entry in stacks or (b"", message((1, [1]))))]
    profile = message((1, message((1, 2), (2, 3))), *((2, sample) for sample in samples)) + b"\x19" + times(1000) + message((4, 500))
    resource = message((1, message((1, "service.name"), (2, message((1, "shop"))))))
    return message((1, message((1, resource), (2, message((2, profile))))), (2, message(*tables)))


class OtlpCheckerTest(unittest.TestCase):
    def test_accepts_what_is_right(self):
        checked = otlp_check.Checker(request())
        self.assertEqual(checked.findings, [])
        [(attributes, [profile])] = checked.profiles.resources
        self.assertEqual(attributes, {"service.name": "shop"})
        self.assertEqual(profile["samples"][0]["values"], [7])
        self.assertEqual(checked.profiles.stack(1), ["Main"])

    def test_accepts_times_of_three_shapes(self):
        for shape in (((4, [7]),), ((5, times(1000, 1499)),), ((4, [7, 8]), (5, times(1000, 1001)))):
            checked = otlp_check.Checker(request(samples=[message((1, 1), (2, [1]), *shape)]))
            self.assertEqual(checked.findings, [], shape)

    def test_notices_each_fault(self):
        own = message((1, 1), (2, [1]), (4, [7]))
        for what, faulty, fault in (
                ("orphan", request(strings=[*STRINGS, "nobody"]), "not used"),
                ("twice", request(strings=[*STRINGS, "Main"]), "is there 2 times"),
                ("no zero value", request(stacks=[message((1, [1]))]), "zero value"),
                ("outside", request(samples=[message((1, 2), (2, [1]), (4, [7]))]), "is not in its table"),
                ("two values", request(samples=[message((1, 1), (2, [1]), (4, [7, 8]))]), "2 values"),
                ("no value", request(samples=[message((1, 1), (2, [1]))]), "0 values"),
                ("other times than values", request(samples=[message((1, 1), (2, [1]), (4, [7]), (5, times(1000, 1001)))]), "1 values and 2 times"),
                ("before", request(samples=[message((1, 1), (2, [1]), (5, times(999)))]), "outside of its profile"),
                ("behind", request(samples=[message((1, 1), (2, [1]), (5, times(1500)))]), "outside of its profile"),
                ("shapes", request(samples=[own, message((1, 0), (5, times(1000)))]), "different shapes"),
                ("same identity", request(samples=[own, own]), "same stack"),
                ("attribute twice", request(samples=[message((1, 1), (2, [1, 1]), (4, [7]))]), "an attribute twice"),
                ("no build id", request(mapping=message((4, 5))), "no build id"),
                ("no name", request(function=message((2, 1))), "no name")):
            with self.subTest(what):
                findings = otlp_check.Checker(faulty).findings
                self.assertTrue(any(fault in finding for finding in findings), findings)


if __name__ == "__main__":
    unittest.main()
