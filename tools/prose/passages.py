"""A text that somebody reads and that stands in a source, with the line where it begins."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Passage:
    line: int
    text: str
