"""`pgcc explore`: a web page in which a model is explored."""

from __future__ import annotations

import argparse
from pathlib import Path

import pgcc
from pgcc.cli.files import check_output, read_circuit, write_text
from pgcc.explore.page import check_page_name


def run(args: argparse.Namespace) -> None:
    """Write the page, and tell how large it is."""
    check_output(args, "expected the page to write: -o page.html")
    check_page_name(args.output)
    page = pgcc.compile(read_circuit(args)).explore(title=args.title or _title(args.file))
    write_text(args.output, page.html)
    print(f"wrote {args.output}: {page.size}; open it in a browser")


def _title(file: str | None) -> str | None:
    return None if file in (None, "-") else Path(str(file)).name
