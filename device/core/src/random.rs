// SPDX-License-Identifier: MIT OR Apache-2.0
//! Seeded random numbers (splitmix64). They are the same on all machines, so loads are, too. The
//! bench, `direct` and `probe` use them.

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The `n`-th number of the sequence of `seed`, in any order.
pub fn draw(seed: u64, n: u64) -> u64 {
    let mut word = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(STEP));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Scales a number uniformly to `0..bound`, with an error of less than `bound / 2^64`.
pub fn below(number: u64, bound: u64) -> u64 {
    ((u128::from(number) * u128::from(bound.max(1))) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // The first outputs of splitmix64 for seed 1234567, as its reference code prints them.
        let known =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([0, 1, 2].map(|n| draw(1_234_567, n)), known);
    }

    #[test]
    fn below_reaches_both_ends_and_no_further() {
        assert_eq!((below(0, 10), below(u64::MAX, 10), below(u64::MAX, 1)), (0, 9, 0));
        assert_eq!(below(u64::MAX, 0), 0, "no bound is a bound of one");
    }
}
