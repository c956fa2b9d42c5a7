#!/usr/bin/env python3
"""Files and lines of managed frames: are they those that the runtime itself tells, and is the line that works the hot one?

The program (tests/apps/lines) prints the stacks of its threads by the runtime's own StackTrace, files, lines and columns included. Its threads
stand still, so `stacks --lines` must say the same of each frame.
"""
import collections
import os
import re
import shutil
import subprocess
import tempfile

import deployments
import harness
import runtimes
import stack_truth

VERSIONS = runtimes.selected()
FORMS = ("r2r", "composite", "single-file", "single-file-compressed")
PROJECT = os.path.join(runtimes.SOURCE, "tests", "apps", "lines", "lines.csproj")
PROGRAM_SOURCE = os.path.join(runtimes.SOURCE, "tests", "apps", "lines", "Program.cs")
# Reason -> environment: code of other compilers, tiers and places.
WAYS = {
    "as usual": {},
    "optimised at once": {"DOTNET_TieredCompilation": "0"},
    "never precompiled": {"DOTNET_ReadyToRun": "0", "DOTNET_TieredPGO": "0"},
}
CHOSEN_WAYS = ("as usual", "optimised at once")


def line_of(comment):
    with open(PROGRAM_SOURCE, encoding="utf-8") as source:
        (number,) = [number for number, text in enumerate(source, 1) if text.rstrip().endswith("// " + comment)]
    return number


HANDLERS = {method: line_of(f"a handler of {method}") for method in ("Finally", "Filters", "Nested")}


class Program(harness.Target):
    """tests/apps/lines, with what its runtime says of its stacks: {tid: [(method, file, line, column)]}, innermost first."""

    def __init__(self, version, environment, path=None, published=None):
        """path: another place of the assembly. published: the command of a published program."""
        command, additions = runtimes.command(version, "120", program="lines") if published is None else ([*published, "120"], {})
        if path:
            command = [command[0], path, *command[2:]]
        super().__init__(command, env={**additions, **environment})

    def told(self):
        stacks = collections.defaultdict(list)
        for line in self.output:
            fields = line.rstrip("\n").split("\t")
            if len(fields) == 5:
                stacks[int(fields[0])].append((fields[1], fields[2], int(fields[3]), int(fields[4])))
        return stacks


class LinesTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def stacks(self, target, *options):
        done = subprocess.run([harness.AGENT, "stacks", "--pid", str(target.host_pid), "--json", "--names", "raw", "--lines", *options],
                              capture_output=True, text=True, timeout=120, check=True)
        return {thread["tid"]: thread["frames"] for thread in map(harness.json.loads, done.stdout.splitlines())}

    def compare(self, told, frames):
        """(equal, silent, differing) frames of one thread. Where a handler runs, its frame has its own line, and the runtime says that of the call
        which threw. Where code has no line the runtime says the first one of the method, and we say none."""
        equal, silent, wrong, place, handled = 0, 0, [], 0, set()
        for method, file, line, column in told:
            # Our stacks lead from a filter to its method's caller. What threw lies between.
            if not file or method == "Throw" or method in handled:
                continue
            handler = HANDLERS.get(method)
            handled.update([method] if handler else [])
            simple = re.compile(r"(::|^)" + re.escape(method) + r"(\[|\(|$)")
            ours = [(at, frames[at]) for at in range(place, len(frames)) if simple.search(frames[at]["name"])]
            same = [at for at, frame in ours if frame.get("file") == file and
                    (frame["line"] == handler if handler else (frame["line"], frame["column"]) == (line, column))]
            if same:
                equal += 1
                place = same[0] + 1
            elif ours and "line" not in ours[0][1]:
                silent += 1
                place = ours[0][0] + 1
            else:
                wrong.append(((method, file, line, column), ours[:2]))
        # Beside those that the runtime tells there is the one that asked it: nothing was stepped over.
        self.assertLessEqual(sum("line" in frame for frame in frames), equal + 1, frames)
        return equal, silent, wrong

    def check_stacks(self, target, least):
        told = target.told()
        ours = self.stacks(target)
        equal = silent = 0
        for tid, stack in told.items():
            one, none, wrong = self.compare(stack, ours[tid])
            self.assertEqual(wrong, [], f"thread {tid}: {stack}")
            equal, silent = equal + one, silent + none
        self.assertGreater(equal, least)
        # A return address behind which nothing is mapped: a call that ends a method, as with a throw.
        self.assertLessEqual(silent, equal * 0.01, told)
        return equal, silent

    def test_frames_have_the_lines_that_the_runtime_tells(self):
        for version in VERSIONS:
            for way in WAYS if runtimes.MATRIX else CHOSEN_WAYS:
                with self.subTest(version=version, way=way):
                    self.need_runtime(version)
                    with Program(version, WAYS[way]) as target:
                        equal, silent = self.check_stacks(target, least=500)
                    print(f"  {version} {way}: {equal} frames equal, {silent} without a line", flush=True)

    def test_the_hot_line(self):
        """Of code that is not optimised, 99 % of the samples are in the line that works. Its callers are in the lines of their calls."""
        version = runtimes.newest()[-1]
        self.need_runtime(version)
        with Program(version, {}) as target:
            agent = harness.Agent(("--pid", str(target.host_pid), "--frequency", "499", "--lines"))
            agent.wait_until_sampling()
            target.use_cpu(3)
            agent.interrupt()
            result = agent.finish(120)
        profile = self.check_result(result, minimum_samples=200)
        hot, callers = line_of("the hot line"), line_of("the line of the callers")
        dear = {frame: count for frame, count in profile.frames("j").items() if frame.startswith("Lines.Hot.Dear")}
        total = sum(dear.values())
        self.assertGreater(total, 500)
        off = total - dear.get(f"Lines.Hot.Dear:{hot}", 0)
        self.assertLessEqual(off, stack_truth.allowed_faults(total, 0.99), dear)
        statements = {frame: count for frame, count in profile.frames("j").items() if frame.startswith("Lines.Hot.Statements")}
        off = sum(statements.values()) - statements.get(f"Lines.Hot.Statements:{callers}", 0)
        self.assertLessEqual(off, stack_truth.allowed_faults(sum(statements.values()), 0.99), statements)


class FormsTest(LinesTest):
    """Published programs: their code is precompiled, or their assemblies are in no file of their own."""

    test_frames_have_the_lines_that_the_runtime_tells = None
    test_the_hot_line = None

    def test_published_forms(self):
        for form in FORMS:
            for version in runtimes.PACKED_VERSIONS:
                with self.subTest(form=form, version=version):
                    published = deployments.publish(form, version, project=PROJECT)
                    with Program(version, {}, published=published) as target:
                        equal, silent = self.check_stacks(target, least=500)
                    print(f"  {form} {version}: {equal} frames equal, {silent} without a line", flush=True)


class PdbPlacesTest(harness.LiveTest):
    """Where a PDB may be, and what is no PDB of the program."""

    NEEDS = ("dotnet",)

    def setUp(self):
        super().setUp()
        self.version = runtimes.newest()[-1]
        self.need_runtime(self.version)
        built = os.path.dirname(runtimes.app("lines"))
        self.folder = tempfile.mkdtemp(prefix="clrsampler-test-lines-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.program = os.path.join(self.folder, "app")
        shutil.copytree(built, self.program)
        self.pdb = os.path.join(self.program, "lines.pdb")

    def lines(self, *options, between=None):
        """Frames with a line in all stacks, and what the command said. `between` is done once the program stands: it reads its PDB itself."""
        with Program(self.version, {}, os.path.join(self.program, "lines.dll")) as target:
            if between:
                between()
            done = subprocess.run([harness.AGENT, "stacks", "--pid", str(target.host_pid), "--json", "--lines", *options],
                                  capture_output=True, text=True, timeout=120, check=True)
        return done.stdout.count('"line":'), done.stderr

    def test_beside_the_assembly(self):
        self.assertGreater(self.lines()[0], 500)

    def test_a_folder_that_is_given(self):
        elsewhere = os.path.join(self.folder, "symbols")
        os.mkdir(elsewhere)
        shutil.move(self.pdb, elsewhere)
        self.assertGreater(self.lines("--pdb-path", elsewhere)[0], 500)

    def test_another_build_a_damaged_one_and_what_is_no_file(self):
        with open(self.pdb, "rb") as file:
            good = file.read()
        other = bytearray(good)
        at = good.index(b"#Pdb")
        stream = int.from_bytes(good[at - 8:at - 4], "little")
        other[stream] ^= 1  # its id begins there
        for name, content, word in (("another build", bytes(other), "another build"), ("cut off", good[:300], "gives no lines"),
                                    ("no PDB", b"x" * 4096, "gives no lines")):
            with self.subTest(name):
                def write(content=content):
                    with open(self.pdb, "wb") as file:
                        file.write(content)

                lines, said = self.lines(between=write)
                self.assertEqual(lines, 0)
                self.assertIn(word, said)

        def make_fifo():
            os.remove(self.pdb)
            os.mkfifo(self.pdb)

        def make_huge():
            with open(self.pdb, "wb") as file:
                file.truncate(2 << 30)

        for name, make in (("2 GB", make_huge), ("a FIFO", make_fifo)):
            with self.subTest(name):
                lines, said = self.lines(between=make)
                self.assertEqual(lines, 0)
                self.assertIn("gives no lines", said)


if __name__ == "__main__":
    harness.main()
