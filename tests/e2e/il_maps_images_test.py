#!/usr/bin/env python3
"""Are the IL maps that we read from precompiled images those that a second reader has? Every method of the runtime packs, arm64 and x86-64.

The second reader is r2r_il_maps.py, which follows the descriptions of the format. ClrMD, the oracle of il_maps_r2r_oracle_test, attaches only
to processes of its own architecture. Images of x86-64 are compared with both, so the second reader is judged too.
"""
import glob
import os

import check_program
import r2r_il_maps
import r2r_names_test
import runtimes

PACKS = (*((version, "linux-arm64") for version in runtimes.ARM64_VERSIONS), *((version, "linux-x64") for version in runtimes.PACKED_VERSIONS[1:]))
LEAST_PAIRS = 1_000_000


def ours(image):
    """{RVA of a method: [(native offset, IL offset)]}, as r2r_il_maps.il_maps gives it."""
    status, output = r2r_names_test.check("il-map-entries", image)
    if status:
        raise AssertionError(output)
    maps = {}
    for line in output.splitlines():
        begin, *entries = line.split(" ")
        maps[int(begin, 16)] = [(int(native), int(il)) for il, native in (entry.split(":") for entry in entries)]
    return maps


def resumption_stubs(image):
    """RVAs of the stubs by which async methods of .NET 11 go on: they have maps, but no statement of a method behind them."""
    rows = (line.split(" ", 3) for line in r2r_names_test.check("names", image)[1].splitlines())
    return {int(begin, 16) for begin, _, part, _ in rows if part == "resumption"}


class IlMapsImagesTest(check_program.CheckProgramTest):
    def compare(self, image):
        """Numbers of methods, of their pairs, and of stubs that only the other reader has."""
        mine, theirs = ours(image), r2r_il_maps.il_maps(image)
        only_theirs = theirs.keys() - mine.keys()
        if only_theirs:
            self.assertLessEqual(only_theirs, resumption_stubs(image), image)
        differ = [f"{begin:x}: {pairs} {theirs.get(begin)}" for begin, pairs in mine.items() if theirs.get(begin) != pairs]
        self.assertEqual(differ[:3], [], image)
        return len(mine), sum(map(len, mine.values())), len(only_theirs)

    def test_every_map_is_that_of_the_second_reader(self):
        for version, system in PACKS:
            with self.subTest(f"{version} {system}"):
                totals = []
                for image in sorted(glob.glob(os.path.join(self.need(r2r_names_test.framework, version, system), "*.dll"))):
                    try:
                        totals.append(self.compare(image))
                    except r2r_il_maps.NotReadyToRun:
                        self.assertEqual(ours(image), {})
                methods, pairs, stubs = map(sum, zip(*totals))
                print(f"  {version} {system}: {len(totals)} images, {methods} methods equal with {pairs} pairs, 0 differ; "
                      f"{stubs} resumption stubs left out", flush=True)
                self.assertGreaterEqual(pairs, LEAST_PAIRS)


if __name__ == "__main__":
    check_program.main(r2r_names_test.R2R_CHECK)
