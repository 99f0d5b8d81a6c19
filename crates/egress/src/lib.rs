#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod address;
mod client_hello;
mod connection;
mod forward;
mod http;
mod outbound;
mod proxy;
mod refusal;
mod resolver;
mod rule;
mod socks;
mod state;
mod stream;
mod target;
mod traffic;
mod tunnel;

pub use address::special_class;
pub use proxy::{Admission, CredentialError, Proxy};
pub use refusal::Refusal;
pub use resolver::{Resolver, SystemResolver};
pub use rule::{HostPattern, HostRules, InvalidPattern};
pub use state::Limits;
pub use target::{Host, InvalidTarget, Target};
pub use traffic::{Protocol, Traffic, TrafficReport};

#[cfg(test)]
mod tests;
