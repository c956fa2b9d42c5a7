#!/usr/bin/env python3
"""Is the unwind data that jitdumps have of arm64 code what its instructions do? Every precompiled function of the runtime packs.

tools/r2r_check prints the .eh_frame of each method. arm64_frames reads it, and follows the instructions of the prologue itself; it decodes
both. r2r_il_maps says which functions there are; it shares no code with ours either. JIT-compiled code: arm64_live_test.
"""
import glob
import os

import arm64_frames
import check_program
import r2r_il_maps
import r2r_names_test
import runtimes

# stp x29,x30,[sp,#-32]!; stp x19,x20,[sp,#16]; mov x29,sp; ret
CODE = bytes.fromhex("fd7bbea9f35301a9fd030091c0035fd6")
RECORD, PAIR = ((29, -32), (30, -24)), ((19, -16), (20, -8))
ROWS = [(0, (31, 0, (), False)), (4, (31, 32, RECORD, False)), (8, (31, 32, PAIR + RECORD, False)), (12, (29, 32, PAIR + RECORD, False))]


class Arm64FramesTest(check_program.CheckProgramTest):
    def test_wrong_rows_are_noticed(self):
        self.assertEqual(arm64_frames.difference(CODE, ROWS), ("", 4))
        for index in range(4):
            for wrong in ((31, 48, RECORD, False), (29, 48, PAIR + RECORD, False), (29, 32, RECORD, False), (29, 32, PAIR + RECORD, True)):
                rows = [*ROWS[:index], (4 * index, wrong), *ROWS[index + 1:]]
                self.assertIn(f"at {4 * index}: ", arm64_frames.difference(CODE, rows)[0])
            self.assertNotEqual(arm64_frames.difference(CODE, ROWS[:index] + ROWS[index + 1:] if index else ROWS[:3])[0], "")

    def compare(self, path):
        """Functions, and places that were compared in them."""
        try:
            image = r2r_il_maps.Image(path)
        except r2r_il_maps.NotReadyToRun:
            return 0, 0
        status, output = r2r_names_test.check("frames", path)
        self.assertEqual(status, 0, output[-2000:])
        begins, places, differ = set(), 0, []
        for line in output.splitlines():
            begin, size, frame = line.split(" ", 2)
            begin, size = int(begin, 16), int(size)
            code = image.bytes[image.place(begin):][:size]
            for first, end, rows in arm64_frames.eh_frame_functions(bytes.fromhex(frame), size):
                wrong, compared = arm64_frames.difference(code[first:end], rows)
                begins.add(begin + first)
                places += compared
                if wrong:
                    differ.append(f"{begin + first:x} {wrong}")
        self.assertEqual(differ[:5], [], f"{path}: {len(differ)} differ")
        self.assertEqual(begins, set(image.function_begins()), path)
        return len(begins), places

    def test_every_function_of_the_runtime_packs(self):
        for version in runtimes.ARM64_VERSIONS:
            with self.subTest(version):
                folder = self.need(r2r_names_test.framework, version, "linux-arm64")
                totals = [self.compare(path) for path in sorted(glob.glob(os.path.join(folder, "*.dll")))]
                functions, places = map(sum, zip(*totals))
                print(f"  {version}: {functions} functions, equal at {places} instructions, 0 differ", flush=True)
                self.assertGreater(functions, 100_000)


if __name__ == "__main__":
    check_program.main(r2r_names_test.R2R_CHECK)
