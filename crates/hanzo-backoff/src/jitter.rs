//! Where the randomness of a delay comes from.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// Chooses a delay. Any `FnMut(u64) -> u64` is one, which makes tests exact: `|ceiling| ceiling / 2`.
pub trait Jitter {
    /// A number from zero to `ceiling_ms`, both included.
    fn pick(&mut self, ceiling_ms: u64) -> u64;
}

impl<F: FnMut(u64) -> u64> Jitter for F {
    fn pick(&mut self, ceiling_ms: u64) -> u64 {
        self(ceiling_ms)
    }
}

/// Uniform jitter from a small generator (SplitMix64), seeded from the random keys of the standard library's hash
/// maps.
///
/// **Not cryptographic.** It spreads callers out in time; it must not make tokens or secrets.
#[derive(Debug, Clone)]
pub struct RandomJitter {
    state: u64,
}

impl RandomJitter {
    /// A generator with a seed of its own.
    pub fn new() -> Self {
        Self::from_seed(RandomState::new().build_hasher().finish())
    }

    /// A generator that always draws the same numbers.
    pub fn from_seed(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

impl Default for RandomJitter {
    fn default() -> Self {
        Self::new()
    }
}

impl Jitter for RandomJitter {
    fn pick(&mut self, ceiling_ms: u64) -> u64 {
        let Some(choices) = ceiling_ms.checked_add(1) else { return self.next() };
        // The top `choices`-th part of a product is uniform once the few products that would favour some results
        // are drawn again; a plain remainder would favour small ones.
        let surplus = choices.wrapping_neg() % choices;
        loop {
            let product = u128::from(self.next()) * u128::from(choices);
            let [high, low] = [product >> 64, product & u128::from(u64::MAX)];
            if low >= u128::from(surplus) {
                return u64::try_from(high).expect("the high half of a 128-bit product fits 64 bits");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // The first outputs for seed 1234567, as published with the algorithm.
        let mut generator = RandomJitter::from_seed(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| generator.next()).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn two_generators_differ() {
        let draw = |mut generator: RandomJitter| [generator.next(), generator.next()];
        assert_ne!(draw(RandomJitter::new()), draw(RandomJitter::new()));
    }
}
