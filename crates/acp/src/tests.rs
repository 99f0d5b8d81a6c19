//! Conversations of a client with real sessions, over pipes in memory.

mod cancelling;
mod conversations;
mod editor;
mod harness;
mod lifecycle;
mod permissions;
mod rubbish;
