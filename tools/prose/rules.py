"""Rules of plain English that a program can hold. docs/contributing/style.md has them all."""
import re

from prose.document import cells, line_of, paragraphs, sentences
from prose.wrapping import COLUMNS, atoms

MOST_WORDS = 35  # of a sentence; 25 are aimed at
MOST_WORDS_ON_AVERAGE = 18  # of the sentences of a page
MOST_WORDS_OF_A_CELL = 40
FRAGMENT = re.compile(r"[\"'(]*(Of|Who|What|Whose|Which)\b")


def complaints(document):
    """(line, complaint) of one document, in its order"""
    found = []
    words = []
    for paragraph in paragraphs(document):
        for sentence in sentences(paragraph):
            words.append(sentence.words)
            line = line_of(document, sentence.start)
            fragment = FRAGMENT.match(sentence.plain)
            if sentence.words > MOST_WORDS:
                found.append((line, f"{sentence.words} words: {sentence.text}"))
            if fragment and not sentence.plain.rstrip("\"')").endswith("?"):
                found.append((line, f"begins with {fragment[1]}: {sentence.text}"))
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


def mean(document):
    """Words a sentence; 0 of a document without sentences"""
    words = [sentence.words for paragraph in paragraphs(document) for sentence in sentences(paragraph)]
    return sum(words) / len(words) if words else 0
