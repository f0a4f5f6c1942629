//! Pseudo-random numbers that are the same in every run with one seed.

/// A xorshift generator; the value is its state and must not be 0.
pub struct Rng(pub u64);

impl Rng {
    /// Returns a number from 0 up to, but not including, `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// Returns a random entry of a list.
    #[cfg(unix)]
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        let count = list.len() as u64;
        (count > 0).then(|| &list[self.below(count) as usize])
    }
}
