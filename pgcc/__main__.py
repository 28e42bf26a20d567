"""`python -m pgcc` is the command `pgcc`."""

from __future__ import annotations

import sys

from pgcc.cli import main

if __name__ == "__main__":
    sys.exit(main())
