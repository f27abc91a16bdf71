//! The ids and times of seeded rows, identical in every run.

use crate::product;

/// 2025-01-01: before any record that a measurement creates.
const START: i64 = 1_735_689_600_000;

/// The id of row `n`.
pub fn id(n: i64) -> String {
    product::uuid7(created(n), scatter(n))
}

pub fn created(n: i64) -> i64 {
    START + n * 1_000
}

/// A pseudorandom number, identical in every run (splitmix64).
pub fn scatter(n: i64) -> u64 {
    let z = (n as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
