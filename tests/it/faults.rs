//! The fault matrix: what a broken network and a broken server do, against each real adapter.
//!
//! Every attempt ends in one typed error of the provider, within its limit, without the key, and never in an answer.
//!
//! Two things decide the rows on silence. Limits count raw bytes, so that a comment or half an event is a sign of
//! life. And an answer is whole only with its terminal event: a connection that ends before is broken, however
//! politely it was closed.

mod answer;
mod attempt;
mod connection;
mod request;
mod sample;
mod silence;
mod stream;
