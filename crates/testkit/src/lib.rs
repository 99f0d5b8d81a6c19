#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod check;
mod dialect;
#[cfg(any(test, feature = "testing"))]
mod fault;
mod fingerprint;
mod history;
mod http;
mod prefix;
mod response;
mod script;
mod seal;
mod server;
mod violation;

#[cfg(feature = "testing")]
pub use pintle_env::{CommandScript, MemoryEnvironment, contract};
#[cfg(feature = "testing")]
pub use pintle_llm::testing::FakeAdapter;

pub use check::{Checker, check};
pub use dialect::{Dialect, UnknownDialect};
#[cfg(any(test, feature = "testing"))]
pub use fault::{FaultGate, FaultRecord, FaultScript, FaultServer, FaultStep};
pub use script::{
    Call, CallInput, ErrorEvent, Expectation, Failure, FailureKind, Finish, Script, ScriptError, Turn,
    TurnVariant,
};
pub use server::{RecordedRequest, ScriptedServer, ServerError, ServerOptions};
pub use violation::{Violation, ViolationKind};
