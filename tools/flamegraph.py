#!/usr/bin/env python3
"""Draws folded stacks as a flame graph: one SVG file that any browser opens. Point at a frame to read it in full.

  flamegraph.py FOLDED_FILE > profile.svg        - or no name: standard input

For zooming and searching load the folded file into speedscope, or draw it with FlameGraph's flamegraph.pl --color=java.
"""
import sys
import zlib
from xml.sax.saxutils import escape

WIDTH, ROW, TEXT, CHARACTER, TOP = 1400, 17, 11, 6.6, 34
# Green: managed, orange: kernel, red: native; the same choice as flamegraph.pl --color=java.
COLOURS = {"_[j]": (80, 200, 80), "_[k]": (235, 150, 50), "": (230, 100, 90)}


class Node:
    __slots__ = ("count", "children")

    def __init__(self):
        self.count = 0
        self.children = {}


def read(lines):
    root = Node()
    for number, line in enumerate(lines, 1):
        stack, _, count = line.rstrip("\n").rpartition(" ")
        if not stack or not count.isdigit():
            raise SystemExit(f"line {number} is not `frame;frame;... count`")
        node = root
        node.count += int(count)
        for frame in stack.split(";"):
            node = node.children.setdefault(frame, Node())
            node.count += int(count)
    return root


def boxes(root):
    """(depth, first sample, samples, frame) of every frame; no recursion, stacks may be hundreds of frames deep."""
    pending = [(root, 0, 0)]
    while pending:
        node, depth, at = pending.pop()
        for frame, child in sorted(node.children.items()):
            yield depth, at, child.count, frame
            pending.append((child, depth + 1, at))
            at += child.count


def colour(frame, suffix):
    # The shade follows the name, so that a method looks the same in two graphs.
    shade = 0.82 + (zlib.crc32(frame.encode()) % 100) / 100 * 0.25
    return "#" + "".join(f"{min(255, int(c * shade)):02x}" for c in COLOURS[suffix])


def draw(root, out):
    scale = (WIDTH - 20) / max(root.count, 1)
    shown = [b for b in boxes(root) if b[2] * scale >= 0.3]
    height = TOP + ROW * (1 + max((b[0] for b in shown), default=0)) + 12
    out.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
              f'font-family="monospace" font-size="{TEXT}">\n<rect width="100%" height="100%" fill="#f8f8f4"/>\n'
              f'<text x="10" y="20" font-size="14">{root.count} samples; green: managed, red: native, orange: kernel</text>\n')
    for depth, at, count, frame in shown:
        suffix = frame[-4:] if frame[-4:] in COLOURS else ""
        name = frame[:-4] if suffix else frame
        x, y, width = 10 + at * scale, height - 12 - ROW * (depth + 1), count * scale
        letters = int((width - 4) / CHARACTER)
        label = name if len(name) <= letters else name[:letters - 2] + ".." if letters > 4 else ""
        out.write(f'<g><title>{escape(name)}: {count} samples, {100 * count / root.count:.2f} %</title>'
                  f'<rect x="{x:.1f}" y="{y}" width="{max(width - 0.4, 0.3):.1f}" height="{ROW - 1}" rx="1" fill="{colour(name, suffix)}"/>'
                  + (f'<text x="{x + 3:.1f}" y="{y + 12}">{escape(label)}</text>' if label else "") + "</g>\n")
    out.write("</svg>\n")


def main():
    if len(sys.argv) > 2 or sys.argv[1:] in (["-h"], ["--help"]):
        raise SystemExit(__doc__)
    source = sys.stdin if len(sys.argv) < 2 or sys.argv[1] == "-" else open(sys.argv[1], encoding="utf-8")
    with source:
        root = read(source)
    draw(root, sys.stdout)


if __name__ == "__main__":
    main()
