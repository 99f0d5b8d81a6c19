//! Tests against the server of `pintle-server`, and against servers that do not behave.

mod faults;
mod harness;
mod operations;
mod requests;
mod streams;
mod tasks;
