"""The texts of sources that somebody reads: which files have them, and by which rules they go."""
import collections

from prose.source_comments import comments
from prose.messages import messages
from prose.page_texts import texts
from prose.rules import MOST_WORDS_ON_AVERAGE, mean_of_passages, passage_complaints

COMMENTED = ["userspace/**/*.cc", "userspace/**/*.h", "bpf/*.c", "bpf/*.h", "include/**/*.h"]
PROGRAM = ["userspace/**/*.cc", "userspace/**/*.h"]
PAGES = ["userspace/*/page/src/*.js", "userspace/*/page/src/*.jsx"]


def complaints(root):
    """(file, line, complaint) of all sources"""
    return [*_complaints(root, COMMENTED, comments, False), *_complaints(root, PROGRAM, messages, True), *_complaints(root, PAGES, texts, True)]


def means(root):
    """{file or folder: words a sentence} of comments, messages and texts of pages"""
    return {f"{kind} of {name}": mean for kind, patterns, passages in
            (("comments", COMMENTED, comments), ("messages", PROGRAM, messages), ("texts", PAGES, texts))
            for name, mean in _means(root, patterns, passages).items()}


def _files(root, patterns):
    return sorted({path for pattern in patterns for path in root.glob(pattern)})


def _means(root, patterns, passages):
    """Comments of a file are judged by themselves, since a file is read by itself. Messages and pages are judged by folder."""
    groups = collections.defaultdict(list)
    for path in _files(root, patterns):
        group = path if passages is comments else path.parent
        groups[group.relative_to(root).as_posix()].extend(passages(path.read_text(encoding="utf-8")))
    return {name: mean_of_passages(group) for name, group in groups.items()}


def _complaints(root, patterns, passages, begins_small):
    for path in _files(root, patterns):
        for line, complaint in passage_complaints(passages(path.read_text(encoding="utf-8")), begins_small):
            yield path.relative_to(root).as_posix(), line, complaint
    for name, mean in _means(root, patterns, passages).items():
        if mean > MOST_WORDS_ON_AVERAGE:
            yield name, 1, f"{mean:.1f} words a sentence on average, {MOST_WORDS_ON_AVERAGE} are the most"
