"""Completion of commands, options and their values for bash, zsh and fish."""
FILES = {"FILE", "IN", "OUT", "BEFORE", "AFTER"}
FOLDERS = {"DIR"}


def _kind(option):
    if option.choices:
        return "choices"
    return "files" if option.metavar in FILES else "folders" if option.metavar in FOLDERS else "pids" if (option.metavar or "").startswith("PID") else "any"


def bash(commands):
    names = " ".join(command.name for command in commands[1:])
    lines = ["# bash completion of clrsampler", "_clrsampler() {", "  local current=$2 previous=$3 command= word",
             "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do",
             f"    case $word in {names.replace(' ', '|')}) command=$word; break ;; --) compopt -o default; return ;; esac", "  done",
             "  local words= values=", "  case $command in"]
    for command in commands:
        own = names + " " if not command.name else ""
        lines.append(f"    {command.name})" if command.name else '    "")')
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
        specs += [f"'{exclude}{name}[{_zsh_text(option.help[0])}]{action}'" for name in option.names]
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
        lines += [f"      {command.name}) _arguments \\", *(f"        {spec} \\" for spec in _zsh_specs(command)), "        ;;"]
    lines += ["    esac ;;", "esac"]
    return "\n".join(lines) + "\n"


def fish(commands):
    def quoted(text):
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    lines = ["# fish completion of clrsampler", "complete -c clrsampler -f"]
    lines += [f"complete -c clrsampler -n __fish_use_subcommand -a {name} -d {quoted(summary)}" for name, summary in commands[0].commands]
    for command in commands:
        condition = f"'__fish_seen_subcommand_from {command.name}'" if command.name else "__fish_use_subcommand"
        for option in command.options:
            names = " ".join(f"-s {name[1:]}" if not name.startswith("--") else f"-l {name[2:]}" for name in option.names)
            value = {"choices": f" -x -a {quoted(' '.join(option.choices or []))}", "files": " -r -F", "folders": " -x -a '(__fish_complete_directories)'",
                     "pids": " -x -a '(__fish_complete_pids)'", "any": " -x"}[_kind(option)] if option.metavar else ""
            lines.append(f"complete -c clrsampler -n {condition} {names}{value} -d {quoted(option.help[0])}")
        if command.positionals:
            lines.append(f"complete -c clrsampler -n {condition} -F")
    return "\n".join(lines) + "\n"
