"""Modules whose doctests need a package that is not installed are not collected."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["pgcc/torch.py"]
