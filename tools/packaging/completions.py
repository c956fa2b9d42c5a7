"""Completion of commands, options and their values for bash, zsh and fish."""
import re

FILES = {"FILE", "IN", "OUT", "BEFORE", "AFTER", "MAP"}
FOLDERS = {"DIR"}
MOST = 140  # characters of a description where it can be cut


def description(option):
    """The help of an option as far as its last sentence or clause that fits, and never less than one."""
    text = " ".join(option.help)
    ends = [found.start() for found in re.finditer(r"[.;] ", text)]
    if len(text) <= MOST or not ends:
        return text
    return text[:max((end for end in ends if end <= MOST), default=ends[0])]


def _kind(option):
    if option.choices:
        return "choices"
    return "files" if option.metavar in FILES else "folders" if option.metavar in FOLDERS else "pids" if (option.metavar or "").startswith("PID") else "any"


def bash(commands):
    choices = "|".join(f"' {command.name}'" for command in commands[1:] if " " not in command.name)
    nested = [command.name for command in commands if " " in command.name]
    lines = ["# bash completion of clrsampler", "_clrsampler() {", "  local current=$2 previous=$3 command= word",
             "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do",
             f"    case \"$command $word\" in {choices}) command=$word ;; *' --') compopt -o default; return ;;",
             f"      {'|'.join(map(repr, nested))}) command+=\" $word\" ;; esac" if nested else "    esac", "  done",
             "  local words= values=", "  case $command in"]
    for command in commands:
        own = "".join(name + " " for name, _ in command.commands)
        lines.append(f"    {command.name})" if command.name and " " not in command.name else f"    '{command.name}')")
        lines.append(f"      words='{own}{' '.join(name for option in command.options for name in option.names)}'")
        lines.append("      case $previous in")
        for option in command.options:
            if option.metavar:
                value = {"choices": f"values='{' '.join(option.choices or [])}'", "files": "values=:files", "folders": "values=:folders",
                         "pids": "values=:pids", "any": "values=:any"}[_kind(option)]
                lines.append(f"        {'|'.join(option.names)}) {value} ;;")
        lines.append("      esac ;;")
    lines += ["  esac", "  case $values in", '    :files) mapfile -t COMPREPLY < <(compgen -f -- "$current"); compopt -o filenames; return ;;',
              '    :folders) mapfile -t COMPREPLY < <(compgen -d -- "$current"); compopt -o filenames; return ;;',
              '    :pids) words=$(cd /proc && echo [0-9]*) ;;', "    :any) return ;;", '    ?*) words=$values ;;', "  esac",
              '  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")',
              '  if [[ ! ${COMPREPLY[*]} && $command ]]; then compopt -o default; fi', "}", "complete -F _clrsampler clrsampler"]
    return "\n".join(lines) + "\n"


def _zsh_text(text):
    return text.replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def _zsh_specs(command):
    specs = []
    for option in command.options:
        action = ""
        if option.metavar:
            action = f":{_zsh_text(option.metavar)}:" + {"choices": f"({' '.join(option.choices or [])})", "files": "_files", "folders": "_files -/",
                                                     "pids": "_pids", "any": " "}[_kind(option)]
        exclude = "*" if option.several else f"({' '.join(option.names)})"
        specs += [f"'{exclude}{name}[{_zsh_text(description(option))}]{action}'" for name in option.names]
    for option in command.positionals:
        specs.append(f"'{'*' if option.several else ''}:{_zsh_text(option.metavar)}:_files'")
    return specs


def zsh(commands):
    lines = ["#compdef clrsampler", "# zsh completion of clrsampler", "local context state state_descr line", "typeset -A opt_args",
             "_arguments -C \\", *(f"  {spec} \\" for spec in _zsh_specs(commands[0])), "  '1: :->command' '*:: :->rest'", "case $state in",
             "  command)", "    local -a commands=("]
    lines += [f"      '{name}:{_zsh_text(summary)}'" for name, summary in commands[0].commands]
    lines += ["    )", "    _describe command commands ;;", "  rest)", "    case $line[1] in"]
    for command in commands[1:]:
        if " " in command.name:
            continue
        if not command.commands:
            lines += [f"      {command.name}) _arguments \\", *(f"        {spec} \\" for spec in _zsh_specs(command)), "        ;;"]
            continue
        lines += [f"      {command.name})", "        local -a below=("]
        lines += [f"          '{name}:{_zsh_text(summary)}'" for name, summary in command.commands]
        lines += ["        )", "        if (( CURRENT == 2 )); then _describe command below; return; fi",
                  "        local chosen=$words[2]", "        shift words; (( CURRENT-- ))", "        case $chosen in"]
        for below in commands:
            if below.name.startswith(command.name + " "):
                word = below.name.split()[1]
                lines += [f"          {word}) _arguments \\", *(f"            {spec} \\" for spec in _zsh_specs(below)), "            ;;"]
        lines += ["        esac ;;"]
    lines += ["    esac ;;", "esac"]
    return "\n".join(lines) + "\n"


def _fish_condition(command, commands):
    if not command.name:
        return "__fish_use_subcommand"
    words = command.name.split()
    conditions = [f"__fish_seen_subcommand_from {word}" for word in words]
    if command.commands:
        conditions.append("not __fish_seen_subcommand_from " + " ".join(word for word, _ in command.commands))
    # A command of another one may have the same word.
    conditions += [f"not __fish_seen_subcommand_from {other.name.split()[0]}" for other in commands
                   if len(words) == 1 and other.name.split()[1:] == words]
    return "'" + "; and ".join(conditions) + "'"


def fish(commands):
    def quoted(text):
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    lines = ["# fish completion of clrsampler", "complete -c clrsampler -f"]
    lines += [f"complete -c clrsampler -n __fish_use_subcommand -a {name} -d {quoted(summary)}" for name, summary in commands[0].commands]
    for command in commands:
        condition = _fish_condition(command, commands)
        if command.name:
            lines += [f"complete -c clrsampler -n {condition} -a {word} -d {quoted(summary)}" for word, summary in command.commands]
        for option in command.options:
            names = " ".join(f"-s {name[1:]}" if not name.startswith("--") else f"-l {name[2:]}" for name in option.names)
            value = {"choices": f" -x -a {quoted(' '.join(option.choices or []))}", "files": " -r -F", "folders": " -x -a '(__fish_complete_directories)'",
                     "pids": " -x -a '(__fish_complete_pids)'", "any": " -x"}[_kind(option)] if option.metavar else ""
            lines.append(f"complete -c clrsampler -n {condition} {names}{value} -d {quoted(description(option))}")
        if command.positionals:
            lines.append(f"complete -c clrsampler -n {condition} -F")
    return "\n".join(lines) + "\n"
