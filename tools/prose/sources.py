"""The texts of sources that somebody reads: which files have them, and by which rules they go."""
import collections
import pathlib

from prose.source_comments import comments, hashed_comments, markup_comments, program_comments, python_comments
from prose.messages import messages
from prose.page_texts import texts
from prose.rules import MOST_WORDS_ON_AVERAGE, mean_of_passages, passage_complaints

COMMENTED = {
    comments: [
        "userspace/**/*.cc", "userspace/**/*.h", "bpf/*.c", "bpf/*.h", "include/**/*.h", "tests/**/*.cc", "tests/**/*.c", "tests/**/*.h",
        "tests/apps/**/*.cs", "tests/**/*.js", "tests/**/*.mjs", "tools/**/*.mjs", "userspace/*/page/*.mjs", "userspace/*/page/*.css",
        "userspace/*/page/src/*.js", "userspace/*/page/src/*.jsx"],
    hashed_comments: [
        "CMakeLists.txt", "bpf/CMakeLists.txt", "tests/**/CMakeLists.txt", "tools/**/CMakeLists.txt", "userspace/**/CMakeLists.txt",
        "cmake/*.cmake", "tests/**/*.cmake", "tools/**/*.cmake", "userspace/**/*.cmake", "deploy/**/*.yaml", "tests/**/*.sh", "*.toml"],
    markup_comments: ["tests/**/*.csproj", "tests/**/*.targets", "userspace/*/page/index.html"],
    python_comments: ["tests/**/*.py", "tools/**/*.py"],
    program_comments: [".ci/*", "tools/**/*"],
}
PROGRAM = ["userspace/**/*.cc", "userspace/**/*.h"]
PAGES = ["userspace/*/page/src/*.js", "userspace/*/page/src/*.jsx"]


def complaints(root):
    """(file, line, complaint) of all sources"""
    return [*(complaint for passages, patterns in COMMENTED.items() for complaint in _complaints(root, patterns, passages, False)),
            *_complaints(root, PROGRAM, messages, True), *_complaints(root, PAGES, texts, True)]


def means(root):
    """{file or folder: words a sentence} of comments, messages and texts of pages"""
    return {f"{kind} of {name}": mean for kind, patterns, passages in
            (*(("comments", patterns, passages) for passages, patterns in COMMENTED.items()), ("messages", PROGRAM, messages), ("texts", PAGES, texts))
            for name, mean in _means(root, patterns, passages).items()}


def _files(root, patterns):
    """A pattern without an ending means names without one."""
    return sorted({path for pattern in patterns for path in root.glob(pattern)
                   if path.is_file() and bool(path.suffix) == bool(pathlib.PurePath(pattern).suffix)})


def _means(root, patterns, passages):
    """Comments of a file are judged by themselves, since a file is read by itself. Messages and pages are judged by folder."""
    groups = collections.defaultdict(list)
    for path in _files(root, patterns):
        group = path if passages in COMMENTED else path.parent
        groups[group.relative_to(root).as_posix()].extend(passages(path.read_text(encoding="utf-8")))
    return {name: mean_of_passages(group) for name, group in groups.items()}


def _complaints(root, patterns, passages, begins_small):
    for path in _files(root, patterns):
        for line, complaint in passage_complaints(passages(path.read_text(encoding="utf-8")), begins_small):
            yield path.relative_to(root).as_posix(), line, complaint
    for name, mean in _means(root, patterns, passages).items():
        if mean > MOST_WORDS_ON_AVERAGE:
            yield name, 1, f"{mean:.1f} words a sentence on average, {MOST_WORDS_ON_AVERAGE} are the most"
