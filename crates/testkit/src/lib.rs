#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod answer;
mod check;
mod dialect;
mod fault;
mod fingerprint;
mod history;
mod http;
mod prefix;
mod script;
mod seal;
mod server;
mod violation;

pub use pintle_env::{CommandScript, MemoryEnvironment, contract};
pub use pintle_llm::testing::FakeAdapter;

pub use check::{Checker, check};
pub use dialect::{Dialect, UnknownDialect};
pub use fault::{FaultGate, FaultRecord, FaultScript, FaultServer, FaultStep};
pub use script::{
    Call, CallInput, ErrorEvent, Expectation, Failure, FailureKind, Finish, Script, ScriptError, Turn,
};
pub use server::{RecordedRequest, ScriptedServer, ServerError, ServerOptions};
pub use violation::{Violation, ViolationKind};
