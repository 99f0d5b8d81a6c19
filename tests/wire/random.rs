//! Repeatable randomness.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

/// Returns a new seed.
pub(crate) fn fresh_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 32
}

/// A stream of numbers derived from a seed (SplitMix64).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Returns the numbers for one recording. They do not depend on the other recordings.
    pub(crate) fn of(seed: u64, name: &str) -> Self {
        let mixed = name.bytes().fold(seed, |mixed, byte| Self(mixed ^ u64::from(byte)).next());
        Self(mixed)
    }

    /// Returns a number below `limit`, or 0 if that is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % limit).unwrap_or_default()
    }

    pub(crate) fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
