"""Fills paragraphs to a width. Nothing but line feeds and spaces changes."""
import re

from prose.document import masked, paragraphs

COLUMNS = 120
_STARTS_SOMETHING_ELSE = re.compile(r"[-+*>|<=#]|\d+[.)]$|~~~|```|.*::$")  # at the start of a line it would be no prose


def atoms(text):
    """The pieces that no line may be broken in: words, code, and links with their text."""
    mask = masked(text)
    for link in re.finditer(r"!?\[[^\[\]]*\]\([^()\s]*\)", text):
        if "\0" in mask[link.start():link.end()]:
            mask = mask[:link.start()] + "C" * (link.end() - link.start()) + mask[link.end():]
    return [text[found.start():found.end()] for found in re.finditer(r"\S+", mask)]


def wrapped(document):
    """The document with every paragraph filled. Paragraphs with hard line breaks stay as they are."""
    for paragraph in reversed(paragraphs(document)):
        text = document[paragraph.start:paragraph.end]
        if not re.search(r"(  |\\)\n", text):
            document = document[:paragraph.start] + _filled(paragraph) + document[paragraph.end:]
    return document


def _filled(paragraph):
    words = atoms(re.sub(r"\n\s*(> ?)?", "\n", paragraph.text) if paragraph.rest.lstrip().startswith(">") else paragraph.text)
    lines = [[]]
    for word in (" ".join(word.split()) for word in words):
        lines[-1].append(word)
        if len(paragraph.rest) + len(" ".join(lines[-1])) > COLUMNS:
            first = len(lines[-1]) - 1
            while first and _STARTS_SOMETHING_ELSE.match(lines[-1][first]):
                first -= 1
            if first:
                lines.append(lines[-1][first:])
                del lines[-2][first:]
    return "\n".join((paragraph.rest if number else paragraph.first) + " ".join(line) for number, line in enumerate(lines))
