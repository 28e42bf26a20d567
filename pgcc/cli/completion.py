"""`pgcc completion`: a script that completes commands, options and values in a shell, generated from the parser."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from pgcc.cli.arguments import COMMANDS, build_parser

# The metavariables of options and arguments whose values are files.
_FILES = {"FILE", "DATA", "CSV", "PATH", "MODEL"}


def run(args: argparse.Namespace) -> None:
    """Print the script."""
    print({"bash": bash_script, "zsh": zsh_script}[args.shell](), end="")


def _commands() -> dict[str, argparse.ArgumentParser]:
    """Every command with its parser."""
    (commands,) = (a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(commands.choices)


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return [option for action in parser._actions for option in action.option_strings]


def _chosen(parser: argparse.ArgumentParser) -> Iterator[tuple[list[str], list[str]]]:
    """The options that take one of a few values, with these values; for a positional argument, no options."""
    return ((list(a.option_strings), list(map(str, a.choices))) for a in parser._actions if a.choices is not None)


# -- bash ----------------------------------------------------------------------------------------------------

_BASH = """\
# Completion of pgcc for bash, made by 'pgcc completion bash'. In ~/.bashrc: eval "$(pgcc completion bash)"
_pgcc() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words=
    if ((COMP_CWORD == 1)); then
        words='{commands}'
    else
        case ${{COMP_WORDS[1]}}:$before:$word in
{values}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _pgcc pgcc
"""


def bash_script() -> str:
    """The script for bash. Where it offers nothing, bash completes file names."""
    lines: list[str] = []
    for name, parser in _commands().items():
        for options, values in _chosen(parser):
            place = "|".join(f"{name}:{option}:*" for option in options) or f"{name}:{name}:*"
            lines.append(f"{place}) words='{' '.join(values)}' ;;")
        lines.append(f"{name}:*:-*) words='{' '.join(_options(parser))}' ;;")
    commands = " ".join([*_commands(), *_options(build_parser())])
    return _BASH.format(commands=commands, values="\n".join(f"            {line}" for line in lines))


# -- zsh -----------------------------------------------------------------------------------------------------

_ZSH = """\
#compdef pgcc
# Completion of pgcc for zsh, made by 'pgcc completion zsh': a file called _pgcc in a folder of $fpath.
_pgcc() {{
    if ((CURRENT == 2)); then
        local -a commands=(
{commands}
        )
        _describe command commands
        _arguments {options}
        return
    fi
    shift words
    ((CURRENT--))
    case $words[1] in
{cases}
    esac
}}
_pgcc "$@"
"""


def zsh_script() -> str:
    """The script for zsh, with the help text of every option."""
    cases = []
    for name, parser in _commands().items():
        specs = " \\\n            ".join(spec for action in parser._actions for spec in _zsh_specs(action))
        cases.append(f"        {name}) _arguments \\\n            {specs} ;;")
    commands = "\n".join(f"            {_zsh_quoted(f'{one.name}:{_zsh_escaped(one.summary)}')}" for one in COMMANDS)
    options = " ".join(spec for action in build_parser()._actions for spec in _zsh_specs(action))
    return _ZSH.format(commands=commands, options=options, cases="\n".join(cases))


def _zsh_specs(action: argparse.Action) -> Iterator[str]:
    """The specifications of an action for `_arguments`."""
    if isinstance(action, argparse._SubParsersAction):
        return
    what = _zsh_escaped(str(action.metavar or action.dest))
    if action.choices is not None:
        value = f":{what}:({' '.join(map(str, action.choices))})"
    elif action.nargs == 0:
        value = ""
    else:
        value = f":{what}:{'_files' if action.metavar in _FILES else ' '}"
    if not action.option_strings:
        yield _zsh_quoted(f"{'*' if action.nargs == '*' else '1'}{value}")
    for option in action.option_strings:
        yield _zsh_quoted(f"{option}[{_zsh_escaped(action.help or '')}]{value}")


def _zsh_escaped(text: str) -> str:
    """Text on one line, with colons and brackets escaped for zsh."""
    return re.sub(r"([\\:\[\]])", r"\\\1", " ".join(text.replace("%%", "%").split()))


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
