// SPDX-License-Identifier: MIT OR Apache-2.0
//! Seeded random numbers (splitmix64): the same everywhere, so that loads are the same everywhere.

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The `n`-th number of the sequence that `seed` starts, in any order.
pub fn draw(seed: u64, n: u64) -> u64 {
    let mut word = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(STEP));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Makes a number uniform in `0..bound`; off by less than `bound / 2^64`.
pub fn below(number: u64, bound: u64) -> u64 {
    ((u128::from(number) * u128::from(bound.max(1))) >> 64) as u64
}
