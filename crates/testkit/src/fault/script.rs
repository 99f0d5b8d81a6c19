//! What a connection does, step by step.

use std::time::Duration;

use super::gate::FaultGate;

/// What the server does on one connection, in order; then it closes the connection.
///
/// A connection that is closed while bytes of the client are unread is reset by the system: read the request first
/// where a clean close is meant.
/// A script ends early where the client has gone and a step needs it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct FaultScript {
    /// The steps.
    pub steps: Vec<FaultStep>,
}

/// One thing that the server does.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum FaultStep {
    /// Reads one whole HTTP request, of 64 MiB at most.
    ReadRequest,
    /// Reads bytes, a piece at a time with a pause before each; what is not read stays in the system's buffers.
    Read {
        /// How many in all.
        bytes: usize,
        /// The most at a time, at least one.
        piece: usize,
        /// Silence before each piece.
        pause: Duration,
    },
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Writes the same bytes again and again, with a pause after each time.
    Repeat {
        /// What is written.
        bytes: Vec<u8>,
        /// How often.
        times: usize,
        /// Silence after each time.
        pause: Duration,
    },
    /// Silence for a while.
    Sleep(Duration),
    /// Silence until a gate is open.
    Wait(FaultGate),
    /// Silence until the client closes; what it still sends is read and thrown away.
    AwaitClose,
    /// Resets the connection at once, with what was written and not yet sent. No step follows it.
    Reset,
}

impl FaultScript {
    /// Closes the connection at once.
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

    /// Reads one whole request.
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

    /// Writes the same bytes again and again.
    #[must_use]
    pub fn repeat(self, bytes: impl Into<Vec<u8>>, times: usize, pause: Duration) -> Self {
        self.step(FaultStep::Repeat { bytes: bytes.into(), times, pause })
    }

    /// Says nothing for a while.
    #[must_use]
    pub fn sleep(self, silence: Duration) -> Self {
        self.step(FaultStep::Sleep(silence))
    }

    /// Says nothing until the gate is open.
    #[must_use]
    pub fn wait(self, gate: &FaultGate) -> Self {
        self.step(FaultStep::Wait(gate.clone()))
    }

    /// Says nothing until the client closes the connection.
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
