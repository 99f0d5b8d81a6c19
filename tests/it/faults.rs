//! The fault matrix: broken networks and broken servers, with each real adapter.
//!
//! Every attempt ends with a typed error of the provider, within its time limit and without the key, and never with a
//! response.
//!
//! Two rules decide the tests of silence. Limits count raw bytes, so a comment or half an event counts as activity. And
//! a response is complete only with its terminal event: a connection that ends earlier is an error, even if it is
//! closed cleanly.

mod answer;
mod attempt;
mod connection;
mod request;
mod sample;
mod silence;
mod stream;
