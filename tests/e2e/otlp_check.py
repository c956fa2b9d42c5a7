"""OpenTelemetry's profiles: a decoder of one request, and a checker of the format's rules.

Written from open-telemetry/opentelemetry-proto v1.10.0 and the rules that its profiles come with. Element 0 of each table is the zero value.
No entry is there twice, none is unused, and every index is in its table. Samples of a profile have one shape and distinct identities. Their
times lie within the profile. A mapping says of which build it is.
"""
import collections
import struct

TABLES = {1: "mapping", 2: "location", 3: "function", 4: "link", 5: "string", 6: "attribute", 7: "stack"}
BUILD_IDS = {"process.executable.build_id.gnu", "process.executable.build_id.go", "process.executable.build_id.htlhash"}


def fields(data):
    """(number, value) of each field of a message: an int, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            yield number, varint()
        elif kind == 1:
            yield number, struct.unpack_from("<Q", data, at)[0]
            at += 8
        elif kind == 2:
            size = varint()
            if at + size > len(data):
                raise ValueError(f"field {number} reaches behind its message")
            yield number, data[at:at + size]
            at += size
        else:
            raise ValueError(f"field {number} has wire type {kind}")


def grouped(data):
    groups = collections.defaultdict(list)
    for number, value in fields(data):
        groups[number].append(value)
    return groups


def one(groups, number, default=0):
    values = groups.get(number, [])
    if len(values) > 1:
        raise ValueError(f"field {number} is there {len(values)} times")
    return values[0] if values else default


def packed(groups, number, fixed=False):
    numbers = []
    for value in groups.get(number, []):
        if isinstance(value, int):
            numbers.append(value)
        elif fixed:
            numbers += struct.unpack(f"<{len(value) // 8}Q", value)
        else:
            at = 0
            while at < len(value):
                result = shift = 0
                while True:
                    byte = value[at]
                    at += 1
                    result |= (byte & 0x7F) << shift
                    shift += 7
                    if byte < 0x80:
                        break
                numbers.append(result)
    return numbers


def any_value(data):
    for number, value in fields(data):
        if number == 5:
            return [any_value(item) for _, item in fields(value)]
        return value.decode() if number == 1 else value
    return None


class Profiles:
    """The content of a request. `resources`: (attributes, [profile]); `stack(i)`: names, leaf first."""

    def __init__(self, data):
        request = grouped(data)
        self.dictionary = {name: grouped(one(request, 2, b"")).get(number, []) for number, name in TABLES.items()}
        self.strings = [text.decode() for text in self.dictionary["string"]]
        self.resources = []
        for encoded in request.get(1, []):
            resource = grouped(encoded)
            attributes = {}
            for pair in grouped(one(resource, 1, b"")).get(1, []):
                pair = grouped(pair)
                key = one(pair, 1, b"").decode()
                if key in attributes:
                    raise ValueError(f"a resource has {key} twice")
                attributes[key] = any_value(one(pair, 2, b""))
            profiles = [profile for scoped in resource.get(2, []) for profile in grouped(scoped).get(2, [])]
            self.resources.append((attributes, [self.profile(profile) for profile in profiles]))

    def value_type(self, data):
        groups = grouped(data)
        return self.strings[one(groups, 1)], self.strings[one(groups, 2)]

    def profile(self, data):
        groups = grouped(data)
        samples = []
        for encoded in groups.get(2, []):
            sample = grouped(encoded)
            samples.append({"stack": one(sample, 1), "attributes": packed(sample, 2), "link": one(sample, 3), "values": packed(sample, 4),
                            "times": packed(sample, 5, fixed=True)})
        return {"type": self.value_type(one(groups, 1, b"")), "samples": samples, "time": one(groups, 3), "duration": one(groups, 4),
                "period_type": self.value_type(one(groups, 5, b"")), "period": one(groups, 6), "attributes": packed(groups, 11)}

    def attribute(self, index):
        groups = grouped(self.dictionary["attribute"][index])
        return self.strings[one(groups, 1)], any_value(one(groups, 2, b""))

    def function(self, index):
        return self.strings[one(grouped(self.dictionary["function"][index]), 1)]

    def location(self, index):
        groups = grouped(self.dictionary["location"][index])
        lines = [grouped(line) for line in groups.get(3, [])]
        return {"mapping": one(groups, 1), "functions": [one(line, 1) for line in lines], "lines": [one(line, 2) for line in lines],
                "attributes": packed(groups, 4)}

    def mappings(self):
        """{path: attributes} of the files that have code"""
        entries = [grouped(entry) for entry in self.dictionary["mapping"][1:]]
        return {self.strings[one(entry, 4)]: dict(self.attribute(i) for i in packed(entry, 5)) for entry in entries}

    def stack(self, index):
        locations = packed(grouped(self.dictionary["stack"][index]), 1)
        return [self.function(function) for location in locations for function in self.location(location)["functions"]]


class Checker:
    """`findings`: what breaks the rules, a sentence each."""

    def __init__(self, data):
        self.findings = []
        self.profiles = Profiles(data)
        self.used = {name: {0} for name in TABLES.values()}
        self.check_tables()
        for _, profiles in self.profiles.resources:
            for profile in profiles:
                self.check_profile(profile)
        self.follow()
        self.check_orphans()

    def find(self, text):
        self.findings.append(text)

    def use(self, table, index):
        if index >= len(self.profiles.dictionary[table]):
            self.find(f"{table} {index} is not in its table")
        else:
            self.used[table].add(index)

    def check_tables(self):
        for name, entries in self.profiles.dictionary.items():
            if not entries or entries[0]:
                self.find(f"the first {name} is not the zero value")
            for entry, count in collections.Counter(entries).items():
                if count > 1:
                    self.find(f"{name} {entry!r} is there {count} times")

    def check_profile(self, profile):
        if not all(profile["type"]):
            self.find("a profile has no type of samples")
        if not profile["samples"]:
            self.find("a profile has no samples")
        for text in profile["type"] + profile["period_type"]:
            self.used["string"].add(self.profiles.strings.index(text))
        if (profile["period"] > 0) != all(profile["period_type"]):
            self.find("a period without its type, or the other way round")
        shapes, identities = set(), set()
        for sample in profile["samples"]:
            values, times = len(sample["values"]), len(sample["times"])
            shapes.add((values > 0, times > 0))
            if times and values and times != values or not times and values != 1:
                self.find(f"a sample with {values} values and {times} times")
            identity = (sample["stack"], tuple(sorted(sample["attributes"])), sample["link"])
            if identity in identities:
                self.find("two samples with the same stack, attributes and link")
            identities.add(identity)
            for time in sample["times"]:
                if not profile["time"] <= time < profile["time"] + profile["duration"]:
                    self.find(f"a sample at {time} is outside of its profile")
            self.use("stack", sample["stack"])
            self.use("link", sample["link"])
            self.use_attributes(sample["attributes"], "a sample")
        if len(shapes) > 1:
            self.find("samples of one profile have different shapes")
        self.use_attributes(profile["attributes"], "a profile")

    def use_attributes(self, indexes, whose):
        keys = []
        for index in indexes:
            self.use("attribute", index)
            if index < len(self.profiles.dictionary["attribute"]):
                keys.append(self.profiles.attribute(index)[0])
        if len(set(keys)) != len(keys):
            self.find(f"{whose} has an attribute twice: {keys}")

    def follow(self):
        """Marks as used what used entries use."""
        profiles = self.profiles
        for stack in sorted(self.used["stack"]):
            for location in packed(grouped(profiles.dictionary["stack"][stack]), 1):
                self.use("location", location)
        for index in sorted(self.used["location"]):
            location = profiles.location(index)
            self.use("mapping", location["mapping"])
            self.use_attributes(location["attributes"], "a location")
            for function in location["functions"]:
                self.use("function", function)
        for index in sorted(self.used["mapping"] - {0}):
            mapping = grouped(profiles.dictionary["mapping"][index])
            self.use("string", one(mapping, 4))
            self.use_attributes(packed(mapping, 5), "a mapping")
            if not BUILD_IDS & {profiles.attribute(attribute)[0] for attribute in packed(mapping, 5)}:
                self.find(f"mapping {index} has no build id")
        for index in sorted(self.used["function"] - {0}):
            function = grouped(profiles.dictionary["function"][index])
            for number in (1, 2, 3):
                self.use("string", one(function, number))
            if not one(function, 1):
                self.find(f"function {index} has no name")
        for index in sorted(self.used["attribute"] - {0}):
            attribute = grouped(profiles.dictionary["attribute"][index])
            self.use("string", one(attribute, 1))
            self.use("string", one(attribute, 3))

    def check_orphans(self):
        for name, entries in self.profiles.dictionary.items():
            orphans = set(range(len(entries))) - self.used[name]
            if orphans:
                self.find(f"{len(orphans)} of {len(entries)} entries of the {name} table are not used")
