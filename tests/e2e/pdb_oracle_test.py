#!/usr/bin/env python3
"""Portable PDBs of real projects, read by us and by System.Reflection.Metadata: every sequence point, document, hash, kickoff method, source link,
and what leads from an assembly to its PDB must be the same.

The PDBs are those of NuGet packages, beside their assemblies or inside of them, compiled by C#, F# and Visual Basic. tests/apps/pdb_text is our
reader; it is found through PDB_TEXT or CLRSAMPLER_BUILD_DIR. No root is needed, and nothing is sampled here.
"""
import collections
import glob
import os
import subprocess

import check_program
import runtimes

BUILD_DIR = os.environ.get("CLRSAMPLER_BUILD_DIR", os.path.join(runtimes.SOURCE, "build", "release"))
PDB_TEXT = os.environ.get("PDB_TEXT", os.path.join(BUILD_DIR, "tests", "apps", "pdb_text"))

# (package, version): how many files it has, and System.Reflection.Metadata's points of all of them.
PACKAGES = {
    ("Dapper", "2.1.66"): (3, 12_779),
    ("FluentValidation", "12.2.0"): (1, 5_401),
    ("FSharp.Core", "11.0.101"): (3, 95_424),
    ("Humanizer.Core", "3.0.10"): (7, 38_651),
    ("ICSharpCode.Decompiler", "11.2.0.10050"): (1, 79_190),
    ("Microsoft.Diagnostics.Runtime", "4.1.745802"): (2, 35_516),
    ("Microsoft.NETCore.App.Runtime.NativeAOT.linux-x64", "11.0.0"): (185, 664_380),
    ("NodaTime", "3.3.7"): (2, 16_042),
    ("Polly.Core", "8.9.1"): (6, 17_871),
    ("protobuf-net", "3.4.40"): (4, 28_756),
    ("Shouldly", "4.3.0"): (3, 8_991),
    ("Spectre.Console", "0.57.2"): (4, 43_516),
    ("StackExchange.Redis", "3.4.35"): (7, 181_838),
    ("xunit.assert", "2.9.3"): (2, 5_121),
}


def pdb_files(folder):
    """Portable PDBs and assemblies that have one inside."""
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "**", "*"), recursive=True)):
        if not path.endswith((".pdb", ".dll")) or not os.path.isfile(path):
            continue
        with open(path, "rb") as f:
            content = f.read()
        if content.startswith(b"BSJB") or (content.startswith(b"MZ") and b"MPDB" in content):
            found.append(path)
    return found


def texts(command, files):
    """The lines that a reader prints of each file: a list of lines each."""
    done = subprocess.run([*command, *files], capture_output=True, timeout=600, check=False)
    if done.returncode:
        raise AssertionError(f"{command[-1]} ended with {done.returncode}: {done.stderr[-2000:].decode(errors='replace')}")
    answers = done.stdout.split(b"\n\n")
    if answers.pop() != b"" or len(answers) != len(files):
        raise AssertionError(f"{command[-1]} answered {len(answers)} times for {len(files)} files")
    return [answer.split(b"\n") for answer in answers]


class PdbOracleTest(check_program.CheckProgramTest):
    def compare(self, name, version):
        """How many lines of each kind are equal in all files of a package."""
        files = pdb_files(self.need(runtimes.pack, name, version))
        oracle = [runtimes.dotnet(), self.need(runtimes.app, "oracle_pdb")]
        kinds = collections.Counter()
        for path, ours, theirs in zip(files, texts([PDB_TEXT], files), texts(oracle, files), strict=True):
            different = [pair for pair in zip(ours, theirs, strict=False) if pair[0] != pair[1]]
            self.assertEqual(different[:5], [], path)
            self.assertEqual(len(ours), len(theirs), path)
            kinds.update(line.split(b"\t")[0].decode() for line in ours)
        return len(files), kinds

    def test_every_point_is_the_same(self):
        total = collections.Counter()
        for (name, version), expected in PACKAGES.items():
            with self.subTest(name):
                files, kinds = self.compare(name, version)
                print(f"  {name} {version}: {files} files, {kinds['point']} points, {kinds['document']} documents, {kinds['kickoff']} kickoffs: "
                      "0 differ", flush=True)
                total["files"] += files
                total.update(kinds)
                self.assertEqual((files, kinds["point"]), expected)
        print(f"  {dict(total)}: 0 differ", flush=True)


if __name__ == "__main__":
    check_program.main(PDB_TEXT)
