"""Recursion without Python's stack, which deep circuits would overflow."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any


def resolve(
    question: Any,
    known: Callable[[Any], Any],
    work: Callable[[Any], Generator[Any, Any, Any]],
    answers: dict[Any, Any],
) -> Any:
    """Answer a question by a generator that yields the questions it depends on, and is sent their answers.

    Parameters
    ----------
    question : object
        What is asked.
    known : function
        The answer to a question, or None if there is work to do.
    work : function
        The generator that finds the answer to a question.
    answers : dict
        Gets the answers that were found.

    Examples
    --------
    >>> def sum_up_to(n):
    ...     return n + (yield n - 1)
    >>> found = {0: 0}
    >>> resolve(10_000, found.get, sum_up_to, found)
    50005000
    """
    answer = known(question)
    stack = [] if answer is not None else [(question, work(question))]
    while stack:
        asked, running = stack[-1]
        try:
            wanted = running.send(answer)
        except StopIteration as done:
            answer = answers[asked] = done.value
            stack.pop()
            continue
        answer = known(wanted)
        if answer is None:
            stack.append((wanted, work(wanted)))
    return answer
