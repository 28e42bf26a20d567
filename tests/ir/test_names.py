"""Names as people type them."""

import pytest

import pgcc
from pgcc.errors import EvidenceError
from pgcc.ir.names import find_variable
from pgcc.ir.spelling import MAX_NAME


class Counting(dict):
    """A dict that counts how often a name is looked for."""

    asked = 0

    def __contains__(self, name):
        self.asked += 1
        return super().__contains__(name)


def test_an_edge_is_found_from_either_end():
    assert find_variable("2-1", ["1-2"]) == "1-2"
    assert find_variable("a-b-c", ["b-c-a"]) == "b-c-a"
    assert find_variable("a-b-a", ["b-a-a", "a-a-b"]) is None  # both can be meant


@pytest.mark.parametrize("dashes", [MAX_NAME, 10**5])
def test_a_name_of_dashes_is_looked_for_a_bounded_number_of_times(dashes):
    known = Counting({"1-2": 0})
    assert find_variable("-" * dashes, known) is None
    assert known.asked <= MAX_NAME + 1


def test_evidence_that_is_a_long_name():
    model = pgcc.compile(pgcc.parse("z/2 + 1/2"))
    for given in ("-" * 10**5, f"{'-' * 10**5}=1", {"-" * 10**5: 1}):
        with pytest.raises(EvidenceError) as caught:
            model.prob(given)
        assert len(str(caught.value)) < 300
