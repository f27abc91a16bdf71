//! Back-off: how long to wait before a failed attempt is retried.

/// A table of delays. Each has a random part, so that attempts that failed together are not retried together.
pub struct Backoff {
    /// Seconds before the next attempt, after the first failure, the second and so on. The last one repeats.
    pub delays: &'static [i64],
    /// The random part is at most the delay divided by this.
    pub spread: i64,
}

/// 10 seconds, doubled with each failure up to an hour, and up to a quarter more.
pub const UP_TO_AN_HOUR: Backoff = Backoff { delays: &[10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600], spread: 4 };

impl Backoff {
    /// Returns the seconds until the next attempt of `id` after this number of failures.
    pub fn seconds(&self, id: &str, failures: i64) -> i64 {
        let place = usize::try_from(failures - 1).unwrap_or(0).min(self.delays.len().saturating_sub(1));
        let delay = self.delays.get(place).copied().unwrap_or(0);
        delay + jitter(id, failures).rem_euclid(delay / self.spread + 1)
    }

    /// The longest possible wait, in seconds.
    pub const fn longest(&self) -> i64 {
        let delay = self.delays[self.delays.len() - 1];
        delay + delay / self.spread
    }
}

/// A number derived from the id: a transaction that runs again must write the same values.
fn jitter(id: &str, failures: i64) -> i64 {
    let letters = id.bytes().rev().take(6);
    letters.fold(failures, |sum, byte| sum.wrapping_mul(31).wrapping_add(i64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_and_the_last_one_repeats() {
        for id in ["0190d5a2-0000-7000-8000-000000000000", "0190d5a2-0000-7000-8000-ffffffffffff", "x", ""] {
            let wait = |failures| UP_TO_AN_HOUR.seconds(id, failures);
            assert!((10..=12).contains(&wait(1)) && (20..=25).contains(&wait(2)), "{id}");
            for failures in [10, 11, 1000, i64::MAX] {
                assert!((3600..=UP_TO_AN_HOUR.longest()).contains(&wait(failures)), "{id} {failures}");
            }
            assert_eq!(wait(3), wait(3));
        }
        assert_eq!(UP_TO_AN_HOUR.longest(), 4500);
    }

    #[test]
    fn jitter_separates_retries() {
        let waits: std::collections::HashSet<i64> =
            (0..100).map(|n| UP_TO_AN_HOUR.seconds(&format!("0190d5a2-{n:04}"), 10)).collect();
        assert!(waits.len() > 50, "{}", waits.len());
    }
}
