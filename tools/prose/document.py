"""The prose of a Markdown document or of a manual page's text: paragraphs, sentences and cells of tables, each with its place in the text."""
import dataclasses
import re

GLUE = "\0"  # stands for a mark that is no part of a word
_MARKER = re.compile(r"(?:[-*+]|\d+[.)]) +")
_LABEL = re.compile(r"\S.*::$")  # of a manual page: the term of a definition
_SENTENCE_END = re.compile(rf"[.!?][{GLUE}\"')]*\s+(?=\S)|:[{GLUE}\"')]*\s+(?=[{GLUE}\"'(]*[A-Z0-9])")  # names may begin small
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|vs)\.$|\.\.\.$")


@dataclasses.dataclass(frozen=True)
class Paragraph:
    start: int  # of its first line in the document
    end: int  # of its last line, without the line feed
    first: str  # what stands before its first word: indentation, and the marker of a list item or a quotation
    rest: str  # what stands before the first word of each further line
    text: str

    @property
    def body(self):
        return self.start + len(self.first)


@dataclasses.dataclass(frozen=True)
class Sentence:
    start: int
    end: int
    text: str  # as it is written, on one line
    words: int
    plain: str  # without marks; code is one word


def paragraphs(document):
    """Every paragraph, list item and quotation. Code, headings, tables and HTML are none."""
    found, lines, first, rest, start, end = [], [], "", "", 0, 0
    item, in_code, position = None, None, 0

    def close():
        nonlocal lines
        if lines:
            found.append(Paragraph(start, end, first, rest, document[start + len(first):end]))
        lines = []

    for line in document.split("\n"):
        here, position = position, position + len(line) + 1
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        fence = re.match(r"(`{3,}|~{3,})", stripped)
        if in_code or fence:
            close()
            if not in_code:
                in_code = fence[1]
            elif stripped == in_code:
                in_code = None
            continue
        if not stripped or _is_no_prose(stripped) or not lines and indent >= 4 and indent >= (item or 0) + 4:
            close()
            if stripped and indent < (item or 0):
                item = None
            continue
        marker = _MARKER.match(line.lstrip())
        quote = re.match(r"\s*> ?", line)
        if marker or quote and not lines:
            close()
            first = line[:indent + marker.end()] if marker else quote[0]
            rest = " " * len(first) if marker else first
            item = len(first) if marker else None
            start = here
        elif not lines:
            if not indent:
                item = None
            first = rest = line[:indent]
            start = here
        lines.append(line)
        end = here + len(line)
    close()
    return found


def _is_no_prose(stripped):
    return (stripped.startswith(("|", "<")) or bool(re.match(r"\x23{1,6} |= ", stripped)) or bool(_LABEL.match(stripped))
            or bool(re.fullmatch(r"(-{3,}|={3,}|\*{3,})", stripped)))


def masked(text):
    """As long as the text. Code is a word without marks, targets of links and emphasis are glue."""
    def code(found):
        return "C" + "c" * (len(found[0]) - 1)

    def glue(found):
        return GLUE * len(found[0])

    text = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", code, text, flags=re.S)
    text = re.sub(r"\]\([^()\s]*\)", glue, text)
    text = re.sub(r"\*\*|!?\[|(?<!\w)(?:\*|_)(?=\w)|(?<=\w)(?:\*|_)(?!\w)", glue, text)
    return re.sub(r"(?<=\n)(\s*)> ?", lambda found: found[1] + " " * (len(found[0]) - len(found[1])), text)


def sentences(paragraph):
    """A colon ends a sentence, too, where a capital letter, a number or code follows."""
    mask, start = masked(paragraph.text), 0
    for found in [*_SENTENCE_END.finditer(mask), None]:
        end = found.end() if found else len(mask)
        if found and _ABBREVIATION.search(mask[:found.start() + 1]):
            continue
        if mask[start:end].strip(f"{GLUE} \n"):
            yield _sentence(paragraph, mask, start, start + len(mask[start:end].rstrip()))
        start = end


def _sentence(paragraph, mask, start, end):
    plain = " ".join(mask[start:end].replace(GLUE, "").split())
    written = " ".join(paragraph.text[start:end].split())
    return Sentence(paragraph.body + start, paragraph.body + end, written, sum(any(map(str.isalnum, word)) for word in plain.split()), plain)


def cells(document):
    """Every cell of a table, as a sentence."""
    position, in_code = 0, False
    for line in document.split("\n"):
        here, position = position, position + len(line) + 1
        if line.lstrip().startswith("```"):
            in_code = not in_code
        if in_code or not line.startswith("|"):
            continue
        mask = masked(line)
        bars = [found.start() for found in re.finditer(r"(?<!\\)\|", mask)]
        for left, right in zip(bars, bars[1:]):
            if mask[left + 1:right].strip(" -:"):
                start = left + 1 + len(line[left + 1:right]) - len(line[left + 1:right].lstrip())
                yield _sentence(Paragraph(here, here + len(line), "", "", line), mask, start, left + 1 + len(line[left + 1:right].rstrip()))


def line_of(document, position):
    return document.count("\n", 0, position) + 1
