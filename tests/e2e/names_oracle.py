"""Compares the names that `clrsampler names` prints with those of an independent reader. Pure: texts in, findings out.

Oracles: ClrMD through tests/apps/oracle_names, and the runtime's own jitdump, which has the JIT-compiled methods and, as [PreJIT], the
precompiled ones that have been used. Both spell types in the runtime's notation (docs/frame-names.md).
"""
import bisect
import collections
import re
import struct

COLUMNS = ("address", "kind", "source", "start", "type", "method", "module", "token", "tier", "text")
OPTIONAL = {"start": "0", "token": "0", "tier": ""}  # what stands for a column that is not printed
KINDS = ("jit", "r2r", "stub", "native", "none")
Row = collections.namedtuple("Row", COLUMNS)

# The knowledge of an oracle about an address. `size` may be 0: then `start` is not to be compared. `method_arguments`: whether the oracle prints
# the generic arguments of methods. `module` "", `token` 0 and `tier` "": not known.
Truth = collections.namedtuple("Truth", "type method module token start size method_arguments tier", defaults=("", 0, 0, 0, True, ""))


class BadOutput(Exception):
    """A sentence: how the output breaks the agreed form."""


def parse_rows(text):
    """Rows of `clrsampler names`, whose first line names the columns; raises BadOutput at the first that is not as agreed."""
    rows, columns = [], COLUMNS
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        fields = line.split("\t")
        if number == 1 and line.startswith("#"):
            columns = [field.lstrip("#") for field in fields]
            if missing := set(COLUMNS) - set(columns) - set(OPTIONAL):
                raise BadOutput(f"no column {', '.join(sorted(missing))}: {line[:200]!r}")
            continue
        if len(fields) != len(columns):
            raise BadOutput(f"line {number} has {len(fields)} columns, not {len(columns)}: {line[:200]!r}")
        given = {**OPTIONAL, **dict(zip(columns, fields))}
        row = Row(*(given[column] for column in COLUMNS))
        try:
            row = row._replace(address=int(row.address, 16), start=int(row.start, 16), token=int(row.token, 16))
        except ValueError:
            raise BadOutput(f"line {number}: address, start or token is no hexadecimal number: {line[:200]!r}") from None
        if row.kind not in KINDS:
            raise BadOutput(f"line {number}: kind {row.kind!r}")
        if row.start > row.address:
            raise BadOutput(f"line {number}: the method starts after the address: {line[:200]!r}")
        if not row.text:
            raise BadOutput(f"line {number} has neither a name nor a reason: {line[:200]!r}")
        if not row.method and not re.fullmatch(r"\[.+\]", row.text) and row.kind != "native":
            raise BadOutput(f"line {number}: neither a method nor a text in brackets: {line[:200]!r}")
        rows.append(row)
    return rows


def clrmd_truths(text):
    """address -> Truth or None, from the output of oracle_names."""
    truths = {}
    for line in text.splitlines():
        address, kind, type_, method, module, token, start, size, _, _ = line.split("\t")
        truth = None
        if kind != "none":
            nil = int(token, 16) & 0xffffff == 0
            truth = Truth(type_, method, module, 0 if nil else int(token, 16), int(start, 16), int(size, 16), True)
        truths[int(address, 16)] = truth
    return truths


class JitdumpTruths:
    """address -> Truth or None, from the bytes of a complete jitdump of a stopped process."""

    def __init__(self, data):
        magic, version, header = struct.unpack_from("<III", data)
        if (magic, version) != (0x4A695444, 1):
            raise BadOutput("not a jitdump")
        self._starts, self._owners = [], {}
        at = header
        while at + 16 <= len(data):
            kind, size, _ = struct.unpack_from("<IIQ", data, at)
            if size < 16 or at + size > len(data):
                raise BadOutput(f"the jitdump breaks off at byte {at} of {len(data)}")
            if kind == 0:
                address, code_bytes = struct.unpack_from("<QQ", data, at + 32)
                name = data[at + 56:data.index(b"\0", at + 56)].decode("utf-8", "replace")
                self._add(address, code_bytes, name)
            at += size

    def _add(self, start, size, name):
        """Later records replace what they overlap."""
        at = bisect.bisect_left(self._starts, start)
        while at > 0 and self._starts[at - 1] + self._owners[self._starts[at - 1]][0] > start:
            at -= 1
        while at < len(self._starts) and self._starts[at] < start + size:
            del self._owners[self._starts.pop(at)]
        self._starts.insert(at, start)
        self._owners[start] = (size, name)

    def draw(self, count, random):
        """Addresses inside methods, each method as likely as any other. Not of dynamic methods: the file does not say when they are freed."""
        named = [(start, size) for start, (size, name) in self._owners.items()
                 if size and (truth := truth_of_line(name, start, size)) and (truth.type != "dynamicClass" or truth.method.startswith("IL_STUB"))]
        return [start + random.randrange(size) for start, size in random.choices(named, k=count)]

    def get(self, address):
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        start = self._starts[at]
        size, name = self._owners[start]
        return truth_of_line(name, start, size) if address < start + size else None


def truth_of_line(name, start, size):
    """A name as the runtime writes it, `instance void [module] Type[Args]::Method(parameters)[Tier]`; None for stubs."""
    colons = name.find("::")
    if colons < 0:
        return None
    before = name[:colons]
    bracket = before.rfind("] ")
    module = before[before.rfind("[", 0, bracket) + 1:bracket] if bracket >= 0 else ""
    type_ = before[bracket + 2:] if bracket >= 0 else before.rsplit(" ", 1)[-1]
    method = name[colons + 2:].split("(", 1)[0]
    tier = re.search(r"\[(\w+)\]$", name[colons + 2:])
    return Truth(type_, method, module, 0, start, size, False, tier[1] if tier else "")


def without_arguments(method):
    """Same[System.Int32] -> Same. A method's own name never ends in a bracket."""
    if not method.endswith("]"):
        return method
    depth = 0
    for i in range(len(method) - 1, -1, -1):
        depth += (method[i] == "]") - (method[i] == "[")
        if depth == 0:
            return method[:i]
    return method


def spelled(text):
    """Type names may escape characters of the notation by a backslash; dynamic code has one owner under several names."""
    text = re.sub(r"\\(.)", r"\1", text)
    return "dynamicClass" if text in ("DynamicClass", "ILStubClass") else text


def stem(module):
    return re.sub(r"\.(dll|exe)$", "", module, flags=re.IGNORECASE)


def differences(row, truth):
    """The columns in which a named row contradicts the oracle."""
    found = []
    dynamic = spelled(row.type) == "dynamicClass" or spelled(truth.type) == "dynamicClass"
    if spelled(row.type) != spelled(truth.type):
        found.append("type")
    ours = row.method if truth.method_arguments else without_arguments(row.method)
    if ours != truth.method:
        found.append("method")
    if row.token and truth.token and row.token != truth.token:
        found.append("token")
    if row.module and truth.module and not dynamic and stem(row.module) != stem(truth.module):
        found.append("module")
    if row.start and truth.start <= row.address < truth.start + truth.size and row.start != truth.start:
        found.append("start")
    if row.kind == "jit" and row.tier and truth.tier and row.tier != truth.tier:
        found.append("tier")
    return found


def resumes(row, truth):
    """A precompiled stub that goes on with an async method of .NET 11: it is named after its method (r2r_names_test.py compares which); the
    oracle only says that it is a stub."""
    stub = spelled(truth.type) == "dynamicClass" and truth.method == "IL_STUB_AsyncResume"
    return stub and row.kind == "r2r" and row.start in (0, truth.start)


def reason_of(row):
    """The row's text without what varies from row to row."""
    return re.sub(r"\b(0x)?[0-9a-f]{6,16}\b", "N", row.text)


class Comparison:
    """Counts and findings. `named`: rows with a method; `equal`: the oracle says the same; `silent`: it says nothing."""

    def __init__(self, rows, truths):
        self.rows = len(rows)
        self.named = self.equal = self.generic = self.resuming = 0
        self.kinds = collections.Counter(row.kind for row in rows)
        self.sources = collections.Counter(row.source for row in rows)
        self.tiers = collections.Counter()        # tier of the row: of `equal`, where the oracle says it
        self.silent = collections.Counter()       # kind of the row
        self.silent_rows = []
        self.unnamed = collections.Counter()      # reason
        self.unnamed_rows = []                    # (row, truth or None)
        self.disagreements = []                   # (columns, row, truth)
        for row in rows:
            self._add(row, truths.get(row.address))

    def _add(self, row, truth):
        if row.method:
            self.named += 1
            if truth is None:
                self.silent[row.kind] += 1
                self.silent_rows.append(row)
                return
            if resumes(row, truth):
                self.resuming += 1
                return
            columns = differences(row, truth)
            if columns:
                self.disagreements.append((columns, row, truth))
                return
            self.equal += 1
            if row.kind == "jit" and truth.tier:
                self.tiers[row.tier] += 1
            self.generic += "[" in row.type or row.method.endswith("]")
        elif row.kind == "stub":
            # Debuggers say of a stub whose method it belongs to; the body of a method is no stub.
            if truth is not None and truth.start <= row.address < truth.start + truth.size:
                self.disagreements.append((["kind"], row, truth))
        else:
            self.unnamed[reason_of(row)] += 1
            self.unnamed_rows.append((row, truth))

    def summary(self):
        kinds = " ".join(f"{kind} {count}" for kind, count in sorted(self.kinds.items()))
        silent = f", oracle silent {dict(self.silent)}" if self.silent else ""
        resuming = f", {self.resuming} stubs that resume a method" if self.resuming else ""
        told = sum(self.tiers.values()) - self.tiers[""]
        tiers = f", {told} tiers equal, {self.tiers['']} not told" if self.tiers else ""
        return (f"{self.rows} addresses ({kinds}): {self.equal} equal ({self.generic} generic), {len(self.disagreements)} differ, "
                f"{sum(self.unnamed.values())} unnamed{silent}{resuming}{tiers}")

    def findings(self, most=12):
        """The disagreements as text, the most frequent first."""
        lines = collections.Counter(
            f"{'+'.join(columns)}: {row.kind}/{row.source} {row.type} :: {row.method} [{row.module} {row.token:x}] {row.tier}"
            f" | oracle: {truth.type} :: {truth.method} [{truth.module} {truth.token:x}] {truth.tier}" for columns, row, truth in self.disagreements)
        return [f"{count} x {line}" for line, count in lines.most_common(most)]
