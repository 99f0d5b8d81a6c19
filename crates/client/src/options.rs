//! Options of a client.

use std::time::Duration;

use reqwest::Certificate;

use crate::error::ClientError;

/// Delays between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Maximum delay after the first failure. It doubles with each further failure.
    pub first: Duration,
    /// Upper bound of all delays.
    pub longest: Duration,
}

/// Options of a [`Client`](crate::Client).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Maximum number of retries of a request. Default 4.
    pub retries: u32,
    /// Delays before a request is repeated and before a stream reconnects. Default 500 ms to 15 s.
    pub backoff: Backoff,
    /// Timeout of an attempt. Default 60 s.
    pub timeout: Duration,
    /// Time without a byte after which a stream reconnects. The server sends a heartbeat every 15 s. Default 45 s.
    pub silence: Duration,
    /// Maximum bytes of a journal line, of an event and of any other response. A longer one is an error. Default 64 MiB.
    pub max_bytes: usize,
    /// Root certificates that are trusted in addition to the system's.
    pub(crate) roots: Vec<Certificate>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            retries: 4,
            backoff: Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(15) },
            timeout: Duration::from_secs(60),
            silence: Duration::from_secs(45),
            max_bytes: 64 << 20,
            roots: Vec::new(),
        }
    }
}

impl ClientOptions {
    /// Sets the maximum number of retries of a request.
    #[must_use]
    pub fn with_retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Sets the delays between attempts.
    #[must_use]
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets the timeout of an attempt.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the time without a byte after which a stream reconnects.
    #[must_use]
    pub fn with_silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// Sets the maximum bytes of a line, of an event and of a response.
    #[must_use]
    pub fn with_max_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Trusts the root certificates in this PEM in addition to the system's.
    ///
    /// # Errors
    ///
    /// [`ClientError::Setup`] for text without certificates.
    pub fn with_root_certificates(mut self, pem: &[u8]) -> Result<Self, ClientError> {
        self.roots.extend(Certificate::from_pem_bundle(pem).map_err(ClientError::setup)?);
        Ok(self)
    }
}
