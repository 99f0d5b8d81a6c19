//! Conversations of a client with real sessions, over pipes in memory.

mod cancelling;
mod conversations;
mod harness;
mod lifecycle;
mod permissions;
mod rubbish;
