#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod prelude;

#[cfg(feature = "acp")]
#[doc(inline)]
pub use pintle_acp as acp;
#[doc(inline)]
pub use pintle_agent as agent;
#[cfg(feature = "client")]
#[doc(inline)]
pub use pintle_client as client;
#[cfg(feature = "compat")]
#[doc(inline)]
pub use pintle_compat as compat;
#[cfg(feature = "egress")]
#[doc(inline)]
pub use pintle_egress as egress;
#[doc(inline)]
pub use pintle_env as env;
#[cfg(feature = "evidence")]
#[doc(inline)]
pub use pintle_evidence as evidence;
#[cfg(feature = "governance")]
#[doc(inline)]
pub use pintle_governance as governance;
#[cfg(feature = "host")]
#[doc(inline)]
pub use pintle_host as host;
#[doc(inline)]
pub use pintle_llm as llm;
#[cfg(feature = "mcp")]
#[doc(inline)]
pub use pintle_mcp as mcp;
#[cfg(feature = "middleware")]
#[doc(inline)]
pub use pintle_middleware as middleware;
#[doc(inline)]
pub use pintle_patch as patch;
#[cfg(feature = "postgres")]
#[doc(inline)]
pub use pintle_postgres as postgres;
#[doc(inline)]
pub use pintle_providers as providers;
#[cfg(feature = "restate")]
#[doc(inline)]
pub use pintle_restate as restate;
#[cfg(feature = "server")]
#[doc(inline)]
pub use pintle_server as server;
#[cfg(feature = "store")]
#[doc(inline)]
pub use pintle_store as store;
#[cfg(feature = "testkit")]
#[doc(inline)]
pub use pintle_testkit as testkit;
#[doc(inline)]
pub use pintle_tools as tools;
#[cfg(feature = "web")]
#[doc(inline)]
pub use pintle_web as web;
#[cfg(feature = "workflow")]
#[doc(inline)]
pub use pintle_workflow as workflow;
/// The crate of the derive `JsonSchema`: `#[schemars(crate = "pintle::schemars")]`.
pub use schemars;
/// The crate of the derive `Deserialize`: `#[serde(crate = "pintle::serde")]`.
pub use serde;
