"""A header that says of a class that it is for the main loop only must have something behind the words."""
import re

_SAYS = re.compile(r"\bmain loop only\b", re.I)
_MEMBER = re.compile(r"\bThreadChecker \w+_;")
_PRIVATE = re.compile(r"^ private:", re.M)  # an interface has nothing of its own that two threads could spoil


def unchecked(files):
    """One line for each header of {path: text} whose words nothing checks."""
    found = []
    for path, text in files.items():
        says = _SAYS.search(text) if path.endswith(".h") else None
        if not says or not _PRIVATE.search(text):
            continue
        first = text.count("\n", 0, says.start()) + 1
        if not _MEMBER.search(text):
            found.append(f"{path}:{first}: says main loop only, and has no ThreadChecker")
        elif "main_loop_.Check();" not in text + "".join(_sources(path, files)):
            found.append(f"{path}:{first}: has a ThreadChecker, and no method calls Check")
    return found


def _sources(path, files):
    """The sources that define a header's methods, wherever in its folder they are."""
    folder = path.rpartition("/")[0]
    named = f'#include "{path.removeprefix("userspace/")}"'
    return [text for other, text in files.items() if other.startswith(folder) and other.endswith(".cc") and named in text]
