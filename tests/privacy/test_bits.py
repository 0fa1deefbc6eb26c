# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Random bits: reproducible when seeded, never shared, never reused."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from skdp.privacy.kernel.samplers import SeededBits, SystemBits, make_bits

SOURCES = {
    "system": SystemBits,
    "seeded": lambda: SeededBits(0, "test"),
    "made": lambda: make_bits(7, "test"),
}
every_source = pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)


def mean_hamming_distance(a, b):
    return np.bitwise_count(a ^ b).mean()


def test_equal_seed_and_purpose_give_equal_words():
    first, second = (SeededBits(42, "DPMean").words(1000) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**64, 2**127 + 5])
def test_seeds_of_any_length_are_reproducible(seed):
    np.testing.assert_array_equal(make_bits(seed, "p").words(9), make_bits(seed, "p").words(9))


def test_the_stream_does_not_depend_on_how_it_is_cut_into_calls():
    whole, parts = SeededBits(3), SeededBits(3)
    cut = [parts.words(size) for size in (1, 0, 7, 64, 128, 800)]
    np.testing.assert_array_equal(whole.words(1000), np.concatenate(cut))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((0, "a"), (0, "b")),
        ((0, "a"), (1, "a")),
        ((0, ""), (0, "a")),
        ((0, "a"), (0, "aa")),
        ((0, "ab"), (0, "ba")),
        ((0, "a"), (97, "")),
        ((1, ""), (2**32, "")),
        ((5, "DPMean"), (5, "DPLogisticRegression")),
    ],
)
def test_seeds_and_purposes_give_unrelated_streams(one, other):
    a, b = SeededBits(*one).words(20_000), SeededBits(*other).words(20_000)
    assert not np.intersect1d(a, b).size
    # 32 +- 6 standard errors: independent words differ in half of their bits
    assert abs(mean_hamming_distance(a, b) - 32) < 6 * 4 / np.sqrt(20_000)


@every_source
def test_no_word_is_handed_out_twice_over_many_calls(make):
    bits = make()
    words = np.concatenate([bits.words(size) for size in [1] * 500 + [17] * 300 + [4096] * 10])
    # the chance of an honest collision is below 1e-10
    assert np.unique(words).size == words.size


def test_two_system_sources_share_no_word():
    a, b = SystemBits().words(20_000), SystemBits().words(20_000)
    assert not np.intersect1d(a, b).size


@every_source
def test_words_are_uniform_in_every_bit(make):
    words = make().words(40_000)
    ones = np.array([np.count_nonzero(words >> np.uint64(i) & np.uint64(1)) for i in range(64)])
    assert np.abs(ones / 40_000 - 0.5).max() < 8 * 0.5 / np.sqrt(40_000)


@every_source
def test_words_have_the_stated_shape_and_type(make):
    for size in (0, 1, 33):
        words = make().words(size)
        assert words.shape == (size,)
        assert words.dtype == np.uint64


def test_system_bits_come_from_the_operating_system(monkeypatch):
    asked = []

    def recorded(n_bytes):
        asked.append(n_bytes)
        return bytes(range(n_bytes))

    monkeypatch.setattr(os, "urandom", recorded)
    words = SystemBits().words(2)
    assert asked == [16]
    assert [int(word) for word in words] == [0x0706050403020100, 0x0F0E0D0C0B0A0908]


def test_seeded_bits_never_ask_the_operating_system(monkeypatch):
    bits = SeededBits(0)
    monkeypatch.delattr(os, "urandom")
    assert bits.words(3).size == 3


@every_source
@pytest.mark.parametrize(
    "duplicate", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"]
)
def test_a_source_refuses_to_be_duplicated(make, duplicate):
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        duplicate(make())


@every_source
def test_a_source_refuses_to_run_under_another_process_id(make, monkeypatch):
    bits = make()
    assert bits.words(1).size == 1
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="child process"):
        bits.words(1)


FORK = """
import os
from skdp.privacy.kernel.samplers import SeededBits, SystemBits
inherited = [SeededBits(0), SystemBits()]
refused, answer = [], os.pipe()
child = os.fork()
if child == 0:
    for bits in inherited:
        try:
            bits.words(1)
        except RuntimeError:
            os.write(answer[1], b"refused ")
        else:
            os.write(answer[1], b"shared ")
    SystemBits().words(1)
    os.write(answer[1], b"fresh")
    os._exit(0)
os.waitpid(child, 0)
inherited[0].words(1)
print(os.read(answer[0], 100).decode())
"""


def test_a_forked_child_cannot_use_inherited_bits_but_may_make_its_own():
    # forked from a process of its own: pytest's may have threads
    run = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.strip() == "refused refused fresh"


def test_none_is_the_operating_system_and_not_seeded():
    bits = make_bits(None, "p")
    assert isinstance(bits, SystemBits)
    assert bits.seeded is False


@pytest.mark.parametrize(
    "random_state",
    [0, 123, np.int64(5), np.uint8(5), np.random.RandomState(0), np.random.default_rng(0)],
    ids=lambda state: type(state).__name__,
)
def test_everything_but_none_is_seeded(random_state):
    assert make_bits(random_state, "p").seeded is True


def test_numpy_integers_are_the_seed_they_stand_for():
    expected = make_bits(5, "p").words(10)
    for seed in (np.int8(5), np.int32(5), np.int64(5), np.uint64(5)):
        np.testing.assert_array_equal(make_bits(seed, "p").words(10), expected)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_is_advanced_so_that_two_fits_never_share_noise(make):
    generator, twin = make(9), make(9)
    first, second = make_bits(generator, "p").words(100), make_bits(generator, "p").words(100)
    assert not np.intersect1d(first, second).size
    np.testing.assert_array_equal(make_bits(twin, "p").words(100), first)
    np.testing.assert_array_equal(make_bits(twin, "p").words(100), second)


@pytest.mark.parametrize("seed", [-1, np.int64(-3)])
def test_a_negative_seed_is_refused(seed):
    with pytest.raises(ValueError, match="random_state must not be negative"):
        make_bits(seed)


@pytest.mark.parametrize(
    "random_state", [True, False, np.True_, "0", 1.0, np.float64(1), [0], np.random, b"0"], ids=str
)
def test_what_is_neither_a_seed_nor_a_generator_is_refused(random_state):
    with pytest.raises(ValueError, match="random_state must be None, an int or a generator"):
        make_bits(random_state)


def test_the_refusal_does_not_repeat_the_value():
    with pytest.raises(ValueError, match="got a str") as refusal:
        make_bits("my secret seed")
    assert "secret" not in str(refusal.value)
