"""The simulator's randomness: fixed values, the right distributions, no memory."""

from __future__ import annotations

import numpy as np
import pytest

from injectors.sim import noise
from injectors.sim.noise_tables import quantiles

MANY = np.arange(200_000)


def test_mixing_is_splitmix64() -> None:
    # The published first outputs of SplitMix64 for the seeds 0 and 1234567.
    assert noise.mix64(noise.GAMMA) == 0xE220A8397B1DCDAF
    assert noise.mix64(2 * noise.GAMMA) == 0x6E789E6AA1B965F4
    assert noise.mix64(1234567 + noise.GAMMA) == 6457827717110365317


def test_text_hash_is_fnv_1a() -> None:
    # Published test vectors of 64-bit FNV-1a.
    assert noise.text_hash("") == 0xCBF29CE484222325
    assert noise.text_hash("foobar") == 0x85944171F73967E8


def test_key_of_seed_alone_is_the_first_output_of_splitmix64() -> None:
    assert noise.key(0) == 0xE220A8397B1DCDAF


def test_key_repeats_by_hand() -> None:
    inner = noise.mix64(7 + noise.GAMMA)
    assert noise.key(7, 3) == noise.mix64((inner + noise.GAMMA) % 2**64 ^ 3)


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1])
def test_arrays_give_the_bits_of_single_keys(seed: int) -> None:
    numbers = np.array([-5, 0, 1, 2**62])
    found = noise.keys(seed, "job", numbers, 9)
    assert [int(k) for k in found] == [noise.key(seed, "job", int(n), 9) for n in numbers]


def test_parts_are_told_apart() -> None:
    names = [("ab", "c"), ("a", "bc"), ("abc",), ("c", "ab"), (1, 2), (2, 1), (12,), ("1", 2)]
    assert len({noise.key(1, *parts) for parts in names}) == len(names)


def test_draws_do_not_depend_on_the_order_or_number_of_others() -> None:
    all_at_once = noise.normal_q16(noise.keys(3, "job", MANY[:1000]))
    backwards = noise.normal_q16(noise.keys(3, "job", MANY[:1000][::-1]))
    assert (all_at_once == backwards[::-1]).all()
    assert noise.normal_q16(noise.keys(3, "job", MANY[41:42]))[0] == all_at_once[41]


def test_committed_tables_are_the_stated_quantiles() -> None:
    # The script's libraries may round the last bit differently.
    expected = np.array(quantiles())
    assert np.abs(expected[:, 0] - noise.NORMAL_Q16).max() <= 1
    assert np.abs(expected[:, 1] - noise.EXPONENTIAL_Q16).max() <= 1


def test_golden_table_entries() -> None:
    # Phi^-1(0.5 + 1/4096) = sqrt(2 pi)/4096 = 6.1197e-4 -> 40.1; -ln(1/4096) = 8.3178 -> 545113.
    assert (noise.NORMAL_Q16[1023], noise.NORMAL_Q16[1024]) == (-40, 40)
    assert (-noise.NORMAL_Q16[::-1] == noise.NORMAL_Q16).all()
    assert (noise.EXPONENTIAL_Q16[0], noise.EXPONENTIAL_Q16[-1]) == (16, 545113)
    assert noise.NORMAL_Q16.dtype == noise.EXPONENTIAL_Q16.dtype == np.int64


def test_tables_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        noise.NORMAL_Q16[0] = 0


def test_golden_draws() -> None:
    of = noise.keys(2024, "job", MANY[:4], "noise")
    assert noise.normal_q16(of).tolist() == [-30818, -38668, -41766, -133593]
    assert noise.exponential_q16(of).tolist() == [25187, 21310, 19907, 1374]
    assert noise.below(of, 10).tolist() == [3, 2, 2, 0]
    assert noise.permutation(noise.key(2024, "order"), 6).tolist() == [3, 5, 2, 0, 1, 4]


def test_normal_moments() -> None:
    drawn = noise.normal_q16(noise.keys(1, "n", MANY), 2 * noise.ONE_Q16) / noise.ONE_Q16
    assert abs(drawn.mean()) < 0.02  # 4.5 standard errors of 2/sqrt(200000)
    assert abs(drawn.std() - 2) < 0.02
    assert abs((np.abs(drawn) < 2).mean() - 0.6827) < 0.005


def test_exponential_moments() -> None:
    drawn = noise.exponential_q16(noise.keys(1, "e", MANY)) / noise.ONE_Q16
    assert abs(drawn.mean() - 1) < 0.01
    assert abs(drawn.std() - 1) < 0.02
    assert drawn.min() > 0


def test_uniform_draws() -> None:
    of = noise.keys(1, "u", MANY)
    assert abs(noise.uniform_q16(of).mean() - 32767.5) < 200
    counts = np.bincount(noise.below(of, 7), minlength=7)
    assert len(counts) == 7
    assert np.abs(counts - len(MANY) / 7).max() < 800  # 5 standard deviations


def test_neighbouring_keys_do_not_correlate() -> None:
    drawn = noise.normal_q16(noise.keys(1, "n", MANY)).astype(float)
    for lag in (1, 2, 64, 1024):
        assert abs(np.corrcoef(drawn[:-lag], drawn[lag:])[0, 1]) < 0.011
    other = noise.normal_q16(noise.keys(2, "n", MANY)).astype(float)
    assert abs(np.corrcoef(drawn, other)[0, 1]) < 0.011


def test_choice_follows_its_weights() -> None:
    drawn = noise.choice(noise.keys(1, "c", MANY), [1, 0, 3])
    assert set(np.unique(drawn)) == {0, 2}
    assert abs((drawn == 2).mean() - 0.75) < 0.005


def test_permutation_holds_every_number_once() -> None:
    assert sorted(noise.permutation(noise.key(5), 1000)) == list(range(1000))
    assert noise.permutation(noise.key(5), 1000).tolist() != list(range(1000))


def test_factors_are_near_one_and_never_vanish() -> None:
    of = noise.keys(1, "f", MANY)
    assert abs(noise.factor_q16(of, 3277).mean() / noise.ONE_Q16 - 1) < 0.001
    assert noise.factor_q16(of, noise.ONE_Q16).min() == noise.ONE_Q16 // 8


def test_scale_rounds_half_up() -> None:
    assert noise.scale_q16(np.array([1, 3, -1, -3]), noise.ONE_Q16 // 2).tolist() == [1, 2, 0, -1]


@pytest.mark.parametrize("count", [0, 2**32 + 1])
def test_below_names_its_bounds(count: int) -> None:
    with pytest.raises(ValueError, match=f"1 to 2\\*\\*32, got {count}"):
        noise.below(noise.keys(1), count)


def test_choice_refuses_negative_weights() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        noise.choice(noise.keys(1), [2, -1])
