"""`pgcc completion`: a script that completes commands, options and values in a shell, generated from the parser."""

from __future__ import annotations

import argparse

import shtab

from pgcc.cli.arguments import COMMANDS, build_parser

# The metavariables of options and arguments whose values are files.
_FILES = {"FILE", "DATA", "CSV", "PATH", "MODEL"}


def completion(args: argparse.Namespace) -> None:
    """Print the script."""
    parser = build_parser()
    for command in COMMANDS:
        one = parser.commands[command.name]
        one.description = command.summary  # zsh shows it beside the name
        for action in one._actions:
            if action.metavar in _FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, args.shell))
