"""Random numbers: a stream of its own for every sample, so that samples do not depend on who draws them, or when.

The stream of sample i of row r starts from mix(mix(mix(seed) + r) + i), where `mix` is the finaliser of SplitMix64
(Steele, Lea & Flood 2014), a bijection: no two samples of a row share a start. Numbers come from xoshiro256++
(Blackman & Vigna 2019).
"""

from __future__ import annotations

import numpy as np

from pgcc.kernels.policy import kernel

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_ONE, _11, _17, _19, _23, _27, _30, _31, _41, _45 = (np.uint64(x) for x in (1, 11, 17, 19, 23, 27, 30, 31, 41, 45))
STATE = 4  # words of a stream


@kernel
def _mix(x):
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return x ^ (x >> _31)


@kernel
def start_stream(seed, row, number, state):
    """Put `state` (4 words) at the start of the stream of a sample."""
    key = _mix(seed + _GAMMA)
    key = _mix(key + (np.uint64(row) + _ONE) * _GAMMA)
    key = _mix(key + (np.uint64(number) + _ONE) * _GAMMA)
    for word in range(STATE):
        key += _GAMMA
        state[word] = _mix(key)


@kernel
def uniform(state):
    """The next number of a stream: one of the multiples of 2⁻⁵³ in [0, 1)."""
    a, b, c, d = state[0], state[1], state[2], state[3]
    total = a + d
    result = ((total << _23) | (total >> _41)) + a
    c ^= a
    d ^= b
    state[0], state[1] = a ^ d, b ^ c
    state[2] = c ^ (b << _17)
    state[3] = (d << _45) | (d >> _19)
    return np.float64(result >> _11) * 2.0**-53


@kernel
def start_streams(seed, row, begin, states):
    """The streams of the samples begin, begin + 1, … of a row."""
    for i in range(len(states)):
        start_stream(seed, row, begin + i, states[i])


@kernel
def uniforms(states, out):
    """The next number of every stream."""
    for i in range(len(states)):
        out[i] = uniform(states[i])


@kernel
def first_above(cumulative, begin, end, u):
    """The first place in [begin, end) where a sorted array is above u; the last one has to be."""
    low, high = begin, end - 1
    while low < high:
        middle = (low + high) >> 1
        if u < cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return low
