//! Scripts of connections.

use std::time::Duration;

use super::gate::FaultGate;

/// Steps of the server on one connection, which is closed after the last one.
///
/// Closing a connection with unread bytes resets it: read the request first for a clean close.
/// A script ends early if the client disconnects and a step needs it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct FaultScript {
    /// The steps.
    pub steps: Vec<FaultStep>,
}

/// One step of a script.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum FaultStep {
    /// Reads one complete HTTP request, of at most 64 MiB.
    ReadRequest,
    /// Reads bytes in pieces, with a pause before each. Further bytes stay in the system's buffers.
    Read {
        /// Total number of bytes.
        bytes: usize,
        /// Maximum size of a piece, at least 1.
        piece: usize,
        /// Pause before each piece.
        pause: Duration,
    },
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Writes the same bytes repeatedly, with a pause after each write.
    Repeat {
        /// Bytes to write.
        bytes: Vec<u8>,
        /// Number of repetitions.
        times: usize,
        /// Pause after each write.
        pause: Duration,
    },
    /// Sends nothing for a time.
    Sleep(Duration),
    /// Sends nothing until a gate is open.
    Wait(FaultGate),
    /// Sends nothing until the client closes the connection. Bytes that it still sends are discarded.
    AwaitClose,
    /// Resets the connection immediately, discarding unsent bytes. No step follows.
    Reset,
}

impl FaultScript {
    /// Creates an empty script, which closes the connection immediately.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a step.
    #[must_use]
    pub fn step(mut self, step: FaultStep) -> Self {
        self.steps.push(step);
        self
    }

    /// Reads one complete request.
    #[must_use]
    pub fn read_request(self) -> Self {
        self.step(FaultStep::ReadRequest)
    }

    /// Reads some bytes slowly.
    #[must_use]
    pub fn read_slowly(self, bytes: usize, piece: usize, pause: Duration) -> Self {
        self.step(FaultStep::Read { bytes, piece, pause })
    }

    /// Writes bytes.
    #[must_use]
    pub fn write(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.step(FaultStep::Write(bytes.into()))
    }

    /// Writes the same bytes repeatedly.
    #[must_use]
    pub fn repeat(self, bytes: impl Into<Vec<u8>>, times: usize, pause: Duration) -> Self {
        self.step(FaultStep::Repeat { bytes: bytes.into(), times, pause })
    }

    /// Sends nothing for a time.
    #[must_use]
    pub fn sleep(self, silence: Duration) -> Self {
        self.step(FaultStep::Sleep(silence))
    }

    /// Sends nothing until the gate is open.
    #[must_use]
    pub fn wait(self, gate: &FaultGate) -> Self {
        self.step(FaultStep::Wait(gate.clone()))
    }

    /// Sends nothing until the client closes the connection.
    #[must_use]
    pub fn await_close(self) -> Self {
        self.step(FaultStep::AwaitClose)
    }

    /// Resets the connection.
    #[must_use]
    pub fn reset(self) -> Self {
        self.step(FaultStep::Reset)
    }
}
