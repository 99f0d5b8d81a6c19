//! Random numbers, and the delays between attempts.

use std::time::Duration;

use crate::error::ClientError;
use crate::options::Backoff;

/// Length of an idempotency key, in bytes.
const KEY_BYTES: usize = 16;

/// Maximum number of doublings. Any realistic delay has reached its upper bound by then.
const MAX_DOUBLINGS: u32 = 16;

/// Returns a key that is unique to a request.
pub(crate) fn new_key() -> Result<String, ClientError> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(ClientError::setup)?;
    Ok(bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

impl Backoff {
    /// Returns the delay after a number of consecutive failures, from 1. It is random, so that clients do not all retry at
    /// once.
    pub(crate) fn delay(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(MAX_DOUBLINGS);
        let longest = self.first.saturating_mul(1 << doublings).min(self.longest);
        let mut byte = [0];
        // Without random numbers all clients wait equally long, which is no reason to fail.
        let _ = getrandom::fill(&mut byte);
        longest.mul_f64(0.5 + f64::from(byte[0]) / 512.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let backoff = Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(1) };
        for (failures, longest) in [(1, 100), (2, 200), (4, 800), (5, 1_000), (u32::MAX, 1_000)] {
            let delay = backoff.delay(failures);
            let longest = Duration::from_millis(longest);
            assert!(delay >= longest / 2 && delay <= longest, "{failures}: {delay:?}");
        }
    }

    #[test]
    fn keys_differ() {
        let (one, other) = (new_key().unwrap(), new_key().unwrap());
        assert!(one != other && one.len() == 2 * KEY_BYTES, "{one} {other}");
    }
}
