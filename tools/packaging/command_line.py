"""The output of `clrsampler COMMAND --help` as values. It is the one source of manual pages, completions and the example configuration."""
import dataclasses
import re
import subprocess

COLUMN = 30  # where CLI11 begins descriptions
TYPE = re.compile(r"(?P<metavar>[^ :=]+)(?::\{(?P<choices>[^}]*)\}|:[A-Z]+ in \[(?P<low>\S+) - (?P<high>\S+)\])?(?:=(?P<default>\S*))?$")


@dataclasses.dataclass
class Option:
    names: list  # ["-F", "--frequency"]; of a positional argument one word
    help: list  # its lines
    metavar: str = None  # None: a flag
    choices: list = None
    range: tuple = None
    default: str = None
    several: bool = False
    required: bool = False

    @property
    def long(self):
        return self.names[-1]


@dataclasses.dataclass
class Command:
    name: str  # "" for the program itself, "mip show" for a command of a command
    summary: str
    options: list
    positionals: list
    examples: list  # lines
    commands: list  # (name, summary), of the program itself and of commands that have some

    @property
    def page(self):
        return "-".join(["clrsampler", *self.name.split()])


def read(program):
    """All commands, the program itself first, and behind each its own. Raises ValueError where a help text has a form that is not known."""
    return _with_commands(program, "")


def _with_commands(program, name):
    command = parse(name, _help(program, *name.split()))
    return [command, *(below for word, _ in command.commands for below in _with_commands(program, f"{name} {word}".strip()))]


def _help(program, *words):
    return subprocess.run([program, *words, "--help"], check=True, capture_output=True, text=True, timeout=60).stdout


def parse(name, text):
    summary, _, rest = text.partition("Usage: ")
    sections, current = {}, []
    for line in rest.splitlines():
        if re.fullmatch(r"(Options|Positionals|Subcommands|Examples):", line):
            sections[line[:-1]] = current = []
        elif line:
            current.append(line)
    options = [_option(head, help) for head, help in _entries(sections.get("Options", []))]
    positionals = [_option(head, help) for head, help in _entries(sections.get("Positionals", []))]
    # "to-yaml, mip2yaml": the other name is for who knows it already.
    commands = [(head.split(",")[0], " ".join(help)) for head, help in _entries(sections.get("Subcommands", []))]
    return Command(name, summary.strip().splitlines()[0], options, positionals, sections.get("Examples", []), commands)


def _entries(lines):
    """(head, lines of the description)"""
    entries = []
    for line in lines:
        if line.startswith(" " * COLUMN):
            entries[-1][1].append(line.strip())
            continue
        head, rest = line[:COLUMN], line[COLUMN:]
        # A range has spaces, and the column may end just before one.
        fits = head.endswith(" ") and head.count("[") == head.count("]") and not rest.startswith("in [")
        entries.append((head.strip(), [rest.strip()]) if fits and rest else (line.strip(), []))
    for head, help in entries:
        if not help:
            raise ValueError(f"no description of {head!r}")
    return entries


def _option(head, help):
    names, _, type_text = head.partition(" ")
    option = Option(names.split(","), help)
    if option.names[0].startswith("-") and not type_text:
        return option
    for word, field in ((" REQUIRED", "required"), (" ...", "several")):
        if type_text.endswith(word):
            type_text = type_text.removesuffix(word)
            setattr(option, field, True)
    found = TYPE.fullmatch(type_text)
    if not found:
        raise ValueError(f"the type of {head!r} is not understood")
    option.metavar, option.default = found["metavar"].removesuffix("..."), found["default"]
    option.choices = found["choices"].split(",") if found["choices"] else None
    option.range = (found["low"], found["high"]) if found["low"] else None
    return option
