"""Rules of plain English that a program can hold. docs/contributing/style.md has them all."""
import re

from prose.document import cells, line_of, paragraphs, sentences
from prose.passages import Passage
from prose.wrapping import COLUMNS, atoms

MOST_WORDS = 35  # of a sentence; 25 are aimed at
MOST_WORDS_ON_AVERAGE = 18  # of the sentences of a page
FEWEST_SENTENCES = 4  # of a source, for its mean to say something
MOST_WORDS_OF_A_CELL = 40
FRAGMENT = re.compile(r"[\"'(]*(Of|Who|What|Whose|Which)\b")
SMALL_FRAGMENT = re.compile(FRAGMENT.pattern, re.I)
_PROGRAM = r"agents?|callees?|callers?|clients?|handlers?|it|kernel|one|process(?:es)?|programs?|readers?|runtime|servers?|services?|threads?|writers?"
WHO = re.compile(rf"\b(?:{_PROGRAM}),? who\b|(?:[;:,] |\b(?:by|for|from|of|or|to|and) )who\b(?= (?:\w+s|\w+ed|has|is|was)\b(?! it\b| them\b))|\b[Ww]hoever\b")
HISTORY = re.compile(r"(?<![\"'`])\b([Uu]ntil now|[Ww]as mended|asked for is|[Nn]o longer|(?<!is )(?<!are )(?<!was )(?<!were )(?<!be )(?<!been )used to)\b")


def faults(sentence, fragments=FRAGMENT):
    """The complaints about one sentence."""
    fragment = fragments.match(sentence.plain)
    found = []
    if sentence.words > MOST_WORDS:
        found.append(f"{sentence.words} words: {sentence.text}")
    if fragment and not sentence.plain.rstrip("\"')").endswith("?"):
        found.append(f"begins with {fragment[1]}: {sentence.text}")
    if WHO.search(sentence.plain):
        found.append(f"a program is not \"{WHO.search(sentence.plain)[0]}\": {sentence.text}")
    if HISTORY.search(sentence.plain):
        found.append(f"\"{HISTORY.search(sentence.plain)[0]}\" tells history: {sentence.text}")
    return found


def complaints(document):
    """(line, complaint) of one document, in its order"""
    found = []
    words = []
    for paragraph in paragraphs(document):
        for sentence in sentences(paragraph):
            words.append(sentence.words)
            found.extend((line_of(document, sentence.start), fault) for fault in faults(sentence))
        first = line_of(document, paragraph.start)
        for number, text in enumerate(document[paragraph.start:paragraph.end].split("\n")):
            if len(text) > COLUMNS and len(atoms(text[len(paragraph.rest if number else paragraph.first):])) > 1:
                found.append((first + number, f"{len(text)} columns: {text.strip()}"))
    for cell in cells(document):
        if cell.words > MOST_WORDS_OF_A_CELL:
            found.append((line_of(document, cell.start), f"{cell.words} words in a cell: {cell.text}"))
    if words and sum(words) > MOST_WORDS_ON_AVERAGE * len(words):
        found.append((1, f"{sum(words) / len(words):.1f} words a sentence on average, {MOST_WORDS_ON_AVERAGE} are the most"))
    return sorted(found)


def passage_complaints(passages, begins_small=False):
    """(line, complaint) of texts in a source. begins_small: the first word of a text needs no capital letter."""
    found = []
    for passage in passages:
        fragments = SMALL_FRAGMENT if begins_small and not passage.text[:1].isspace() else FRAGMENT
        for sentence in _sentences(passage.text):
            line = passage.line + line_of(passage.text, sentence.start) - 1
            found.extend((line, fault) for fault in faults(sentence, fragments))
            fragments = FRAGMENT
    return sorted(found)


def mean_of_passages(passages, fewest=FEWEST_SENTENCES):
    """Words a sentence; 0 where sentences are so few that one of them decides"""
    words = [sentence.words for passage in passages for sentence in _sentences(passage.text)]
    return sum(words) / len(words) if len(words) >= fewest else 0


def _sentences(text):
    return [sentence for paragraph in paragraphs(text) for sentence in sentences(paragraph)]


def mean(document):
    """Words a sentence; 0 of a document without sentences"""
    return mean_of_passages([Passage(1, document)], fewest=1)
