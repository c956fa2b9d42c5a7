#!/usr/bin/env python3
"""Makes the files of this folder again: debug information of compiled bodies, and what the runtime itself says that it means.

Each line is a body: bytes of its code, the bytes before its map, the map, and pairs. A pair is an IL offset and a native one, as the runtime
tells them (tests/e2e/rundown.py). Needs the target il_maps of the build folder that CLRSAMPLER_BUILD_DIR names.
"""
import os
import random
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "e2e"))
import harness  # noqa: E402
import il_maps_oracle_test  # noqa: E402
import rundown  # noqa: E402
import runtimes  # noqa: E402

VERSIONS = ("8.0.34", "9.0.23", "10.0.15", "11.0.0")
BODIES, RARE_BODIES = 220, 30
MAX_LINE = 1500
ZEROS_OF_NET10 = "00" * 32


def lines(version):
    command, environment = runtimes.command(version, "zoo", "--seconds", "120")
    with harness.Target(command, env=environment) as target:
        time.sleep(il_maps_oracle_test.WARM_UP_SECONDS)
        bodies = rundown.bodies(rundown.collect(target.host_pid))
        read = il_maps_oracle_test.read_maps(target.host_pid, version, bodies)
    for body in bodies:
        if not body.pairs:
            continue  # without debug information
        _, _, head, bounds, *_ = read[body.start]
        pairs = " ".join(f"{il - (il >> 31 << 32)}:{native}" for il, native in body.pairs)
        yield head, bounds, f"{body.code_bytes} {head} {bounds} {pairs}\n"


def chosen(version):
    """Bodies with something before their sizes, and those with zeros behind their map, are rare: they come first."""
    found = sorted({bounds: (head, bounds, line) for head, bounds, line in lines(version) if len(line) <= MAX_LINE}.values())
    random.Random(1).shuffle(found)
    rare = [row for row in found if len(row[0]) > 16 or row[1].endswith(ZEROS_OF_NET10)][:RARE_BODIES]
    return rare + [row for row in found if row not in rare][:BODIES - len(rare)]


for wanted in VERSIONS:
    with open(os.path.join(HERE, f"{wanted}.txt"), "w") as file:
        file.writelines(line for _, _, line in chosen(wanted))
