//! Limits of a server.

use std::time::Duration;

/// Limits of a server. All of them can be set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Maximum number of open sessions. Beyond it, inactive sessions are closed, and new sessions wait for active ones.
    /// Default 1,000.
    pub sessions: usize,
    /// Maximum number of open sessions of one tenant. Sessions without a tenant count as one tenant. Default: no separate
    /// limit.
    pub sessions_of_tenant: usize,
    /// Maximum number of sessions that have work and wait until others are closed. Default 1,000.
    pub waiting: usize,
    /// Maximum size of a request body, in bytes. Default 32 MiB.
    pub body: usize,
    /// Time within which the head of a request must arrive. A connection without a request is closed after this time.
    /// Default 10 s.
    pub head_time: Duration,
    /// Time within which the body of a request must arrive. Default 60 s.
    pub body_time: Duration,
    /// Maximum rate of requests of one caller, per second, with bursts of four times as many. Default 100. Requests without
    /// a valid token count as one caller.
    pub rate: u32,
    /// Maximum number of connections. Default 4,096.
    pub connections: usize,
    /// Maximum number of connections without an authenticated request. Beyond it, the oldest is closed. Default 512.
    pub unauthenticated_connections: usize,
    /// Time after which an inactive session without watching clients is closed. Default 10 min.
    pub idle: Duration,
    /// Interval of heartbeats on a stream of events. Default 15 s.
    pub heartbeat: Duration,
    /// Time that runs have to end when the server shuts down. The next server resumes unfinished runs. Default 10 s.
    pub drain: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            sessions: 1_000,
            sessions_of_tenant: usize::MAX,
            waiting: 1_000,
            body: 32 << 20,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(60),
            rate: 100,
            connections: 4_096,
            unauthenticated_connections: 512,
            idle: Duration::from_secs(600),
            heartbeat: Duration::from_secs(15),
            drain: Duration::from_secs(10),
        }
    }
}

impl ServerLimits {
    /// Sets the maximum number of open sessions.
    #[must_use]
    pub fn with_sessions(mut self, sessions: usize) -> Self {
        self.sessions = sessions;
        self
    }

    /// Sets the maximum number of open sessions of one tenant.
    #[must_use]
    pub fn with_sessions_of_tenant(mut self, sessions: usize) -> Self {
        self.sessions_of_tenant = sessions;
        self
    }

    /// Sets the maximum number of sessions that wait for room.
    #[must_use]
    pub fn with_waiting(mut self, waiting: usize) -> Self {
        self.waiting = waiting;
        self
    }

    /// Sets the maximum rate of requests of one caller, per second.
    #[must_use]
    pub fn with_rate(mut self, rate: u32) -> Self {
        self.rate = rate;
        self
    }

    /// Sets the maximum number of connections, and of connections without an authenticated request.
    #[must_use]
    pub fn with_connections(mut self, connections: usize, unauthenticated: usize) -> Self {
        (self.connections, self.unauthenticated_connections) = (connections, unauthenticated);
        self
    }

    /// Sets the time after which an inactive session is closed.
    #[must_use]
    pub fn with_idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// Sets the interval of heartbeats on a stream of events.
    #[must_use]
    pub fn with_heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = heartbeat;
        self
    }

    /// Sets the time that runs have to end when the server shuts down.
    #[must_use]
    pub fn with_drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Sets the time within which the head of a request must arrive.
    #[must_use]
    pub fn with_head_time(mut self, time: Duration) -> Self {
        self.head_time = time;
        self
    }
}
