"""Evidence as text."""

from __future__ import annotations

import pytest

from pgcc import EvidenceError
from pgcc.data.text import parse_evidence

# -- evidence as text -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("  ", {}),
        ("z1=1", {"z1": 1}),
        ("z1=1, z3=0", {"z1": 1, "z3": 0}),
        (" z1 = 1 ,z3=0 ,", {"z1": 1, "z3": 0}),
        ("z1=?, z2=-1", {"z1": -1, "z2": -1}),
        ("a=True,b=false", {"a": 1, "b": 0}),
        ("z1=1, z1=1", {"z1": 1}),
        ('"a, b=c"=1', {"a, b=c": 1}),
        ("'it\\'s' = 0", {"it's": 0}),
        (r'"a\"b\\c"=1', {r'a"b\c': 1}),
        ("a-b=1, ж=0, a.b=1", {"a-b": 1, "ж": 0, "a.b": 1}),
    ],
)
def test_evidence_text(text, expected):
    assert parse_evidence(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("z1=1, z1=0", "'z1' is both 1 and 0"),
        ("z1=?, z1=0", r"'z1' is both \? and 0"),
        ("z1=2", "'z1' is '2' in 'z1=2': evidence is 1"),
        ("z1", "cannot read 'z1': evidence looks like"),
        ("z1=1 z2=0", "cannot read 'z1=1 z2=0'"),
        ("z1=", "cannot read"),
        ("=1", "cannot read"),
        ('""=1', "cannot read"),
        ('"a=1', "cannot read"),
        ("z1=1,,z2=0", "cannot read ',z2=0'"),
        ("z1==1", "cannot read"),
        ("z1 in {}", "leaves 'z1' no value"),
        ("x" * 1000, r"cannot read 'x{57}\.\.\.'"),
    ],
)
def test_bad_evidence_text(text, message):
    with pytest.raises(EvidenceError, match=message):
        parse_evidence(text)


def test_long_evidence_is_read_in_linear_time():
    names = [f"z{i}" for i in range(50_000)]
    assert parse_evidence(",".join(f"{name}=1" for name in names)) == dict.fromkeys(names, 1)
