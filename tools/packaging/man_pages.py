"""Manual pages: the prose of prose/PAGE.txt around the options that the program itself lists.

Prose: a line `= NAME` begins a section. Blank lines part paragraphs. Indented lines stay as they are. `words` in backquotes are bold.
A paragraph whose first line ends with two colons (`term::`) is an item of a list.
Sections come in the order of manual pages, OPTIONS and EXAMPLES from the program.
"""
import re

ORDER = ("NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "CONFIGURATION", "SIGNALS", "EXIT STATUS", "ENVIRONMENT", "FILES", "SECURITY",
         "EXAMPLES", "SEE ALSO")
EXIT_STATUS = "0: done. 1: it failed, and a line that begins with `error:` says why. 2: the command line was wrong."


def render(command, prose, version, pages):
    """The page as roff; prose: the text of its file, pages: names of all pages."""
    sections = _sections(prose)
    name = command.page
    summary = command.summary.rstrip(".").replace("Samples", "samples", 1)
    sections["NAME"] = [f"{_escape(name)} \\- {_escape(summary)}"]
    sections["SYNOPSIS"] = _synopsis(command)
    sections["OPTIONS"] = [line for option in command.positionals + command.options for line in _option(option)]
    if command.commands:
        sections["COMMANDS"] = [line for word, text in command.commands
                                for line in (".TP", f".BR {_escape(f'{name}-{word}')} (1)", _text(text + "."))]
    if command.examples:
        sections["EXAMPLES"] = [".nf", *(_escape(line.strip()) for line in command.examples if line.startswith(" ")), ".fi"]
    sections.setdefault("EXIT STATUS", [_text(EXIT_STATUS)])
    others = [page for page in pages if page != name] if not command.name else ["clrsampler"]
    if " " in command.name:
        others = [name.removesuffix("-" + command.name.split(" ", 1)[1])]
    others += [f"{name}-{word}" for word, _ in command.commands] if command.name else []
    sections["SEE ALSO"] = [f".BR {_escape(page)} (1){',' if i + 1 < len(others) else ''}" for i, page in enumerate(others)]
    unknown = set(sections) - set(ORDER)
    if unknown:
        raise ValueError(f"prose of {name}: unknown sections {sorted(unknown)}")
    lines = [f'.TH {name.upper().replace("-", chr(92) + "-")} 1 "" "clrsampler {version}" "User Commands"', ".nh", ".ad l"]
    for section in ORDER:
        if sections.get(section):
            lines += [f".SH {section}", *sections[section]]
    return "\n".join(lines) + "\n"


def _sections(prose):
    sections = {}
    for title, body in re.findall(r"^= (.+)\n((?:(?!= ).*\n?)*)", prose, re.M):
        sections[title] = [line for i, block in enumerate(re.split(r"\n{2,}", body.strip("\n"))) for line in _block(block, first=i == 0)]
    return sections


def _block(block, first):
    lines = block.splitlines()
    if lines[0].endswith("::"):
        return [".TP", _text(lines[0][:-2]), _text(" ".join(lines[1:]))]
    begin = [] if first else [".PP"]
    if lines[0].startswith("  "):
        return [*begin, ".nf", *(_escape(line.strip()) for line in lines), ".fi"]
    return [*begin, _text(" ".join(lines))]


def _synopsis(command):
    if not command.name:
        return [".B clrsampler", "[\\fBrecord\\fP] [\\fIOPTIONS\\fP] [\\fB\\-\\-\\fP \\fICOMMAND\\fP...]", ".br", ".B clrsampler", "\\fICOMMAND\\fP [\\fIOPTIONS\\fP]"]
    if command.commands:
        return [f".B clrsampler {command.name}", "\\fICOMMAND\\fP [\\fIOPTIONS\\fP]"]
    words = [f"\\fI{_escape(option.metavar)}\\fP{'...' if option.several else ''}" for option in command.positionals]
    words = [word if option.required else f"[{word}]" for word, option in zip(words, command.positionals)]
    required = [f"\\fB{_escape(option.long)}\\fP \\fI{_escape(option.metavar)}\\fP" for option in command.options
                if option.required and option.help not in [positional.help for positional in command.positionals]]
    tail = ["[\\fB\\-\\-\\fP \\fICOMMAND\\fP...]"] if command.name == "record" else []
    return [f".B clrsampler {command.name}", " ".join([*required, "[\\fIOPTIONS\\fP]", *words, *tail])]


def _option(option):
    head = ", ".join(f"\\fB{_escape(name)}\\fP" for name in option.names) if option.names[0].startswith("-") else ""
    if option.metavar:
        head = " ".join(filter(None, [head, f"\\fI{_escape(option.metavar)}\\fP"]))
    facts = []
    if option.choices:
        facts.append("One of " + ", ".join(f"`{choice}`" for choice in option.choices) + ".")
    if option.range:
        facts.append(f"From {option.range[0]} to {option.range[1]}.")
    if option.several:
        facts.append("May be given several times.")
    if option.default:
        facts.append(f"Default: `{option.default}`.")
    text = " ".join(option.help)
    # A value at the beginning stays as the program takes it.
    if text.split()[0] not in [f"{choice}:" for choice in option.choices or []]:
        text = text[0].upper() + text[1:]
    if "several times" in text:
        facts = [fact for fact in facts if "several times" not in fact]
    return [".TP", head, _text(" ".join([text if text.endswith(".") else text + ".", *facts]))]


def _text(text):
    return re.sub(r"`([^`]*)`", r"\\fB\1\\fP", _escape(text))


def _escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text)
