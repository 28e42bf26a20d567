"""Eigenvalues of large matrices do not hold up an interrupt."""

import _thread
import signal
import threading
import time

import numpy as np
import pytest

from pgcc import linalg


def test_an_interrupt_is_delivered_while_lapack_runs(monkeypatch):
    """`pgcc sample` of a kernel of 1,200 items went on for nine seconds after Ctrl-C."""
    monkeypatch.setattr(linalg, "_FEW_ROWS", 1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which jobs in the background ignore
    ended = threading.Event()

    def long_call(matrix):
        _thread.interrupt_main()
        ended.wait(30.0)

    try:
        with pytest.raises(KeyboardInterrupt):
            linalg._run(long_call, np.eye(2))
    finally:
        signal.signal(signal.SIGINT, before)
    assert not ended.is_set()
    ended.set()
    time.sleep(0)


def test_the_same_numbers_and_errors(monkeypatch):
    monkeypatch.setattr(linalg, "_FEW_ROWS", 1)
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_array_equal(linalg.eigvalsh(matrix), np.linalg.eigvalsh(matrix))
    for found, expected in zip(linalg.eigh(matrix), np.linalg.eigh(matrix), strict=True):
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(np.linalg.LinAlgError):
        linalg.eigvalsh(np.ones((2, 3)))
