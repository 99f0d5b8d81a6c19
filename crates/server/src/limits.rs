//! Limits of a server.

use std::time::Duration;

/// Limits of a server. Every one can be set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Most sessions that are open at once: beyond, those make way that do nothing, and the others are waited for. Default
    /// 1,000.
    pub sessions: usize,
    /// Most sessions of one tenant that are open at once. Those without a tenant are of one together. Default: no limit of
    /// its own.
    pub sessions_of_tenant: usize,
    /// Most sessions that wait until others are closed, with something to do. Default 1,000.
    pub waiting: usize,
    /// Largest body of a request, in bytes. Default 32 MiB.
    pub body: usize,
    /// Time within which the head of a request has to arrive, and after which a connection without a request is closed. Default
    /// 10 s.
    pub head_time: Duration,
    /// Time within which the body of a request has to arrive. Default 60 s.
    pub body_time: Duration,
    /// Most requests of one caller in a second, which may be exceeded fourfold for a moment. Default 100. Those without a
    /// valid token are one caller together.
    pub rate: u32,
    /// Most connections at once. Default 4,096.
    pub connections: usize,
    /// Maximum number of connections without an authenticated request. Beyond it the oldest is closed. Default 512.
    pub unauthenticated_connections: usize,
    /// Time after which a session is closed that does nothing, waits for nothing and that nobody watches. Default 10 min.
    pub idle: Duration,
    /// Time between two signs of life on a stream of events. Default 15 s.
    pub heartbeat: Duration,
    /// Time that runs have to end when the server shuts down. What goes on then is taken up by the next server. Default 10 s.
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
    /// Sets the most sessions that are open at once.
    #[must_use]
    pub fn with_sessions(mut self, sessions: usize) -> Self {
        self.sessions = sessions;
        self
    }

    /// Sets the most sessions of one tenant that are open at once.
    #[must_use]
    pub fn with_sessions_of_tenant(mut self, sessions: usize) -> Self {
        self.sessions_of_tenant = sessions;
        self
    }

    /// Sets the most sessions that wait for room.
    #[must_use]
    pub fn with_waiting(mut self, waiting: usize) -> Self {
        self.waiting = waiting;
        self
    }

    /// Sets the most requests of one caller in a second.
    #[must_use]
    pub fn with_rate(mut self, rate: u32) -> Self {
        self.rate = rate;
        self
    }

    /// Sets the most connections at once, and the most of those without a valid token.
    #[must_use]
    pub fn with_connections(mut self, connections: usize, unauthenticated: usize) -> Self {
        (self.connections, self.unauthenticated_connections) = (connections, unauthenticated);
        self
    }

    /// Sets the time after which a session is closed that does nothing.
    #[must_use]
    pub fn with_idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// Sets the time between two signs of life on a stream of events.
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

    /// Sets the time within which the head of a request has to arrive.
    #[must_use]
    pub fn with_head_time(mut self, time: Duration) -> Self {
        self.head_time = time;
        self
    }
}
