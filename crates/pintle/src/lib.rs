#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod prelude;

#[doc(inline)]
pub use pintle_agent as agent;
#[doc(inline)]
pub use pintle_env as env;
#[doc(inline)]
pub use pintle_llm as llm;
#[doc(inline)]
pub use pintle_patch as patch;
#[doc(inline)]
pub use pintle_providers as providers;
#[doc(inline)]
pub use pintle_tools as tools;
#[cfg(feature = "web")]
#[doc(inline)]
pub use pintle_web as web;
/// The crate of the derive `JsonSchema`: `#[schemars(crate = "pintle::schemars")]`.
pub use schemars;
/// The crate of the derive `Deserialize`: `#[serde(crate = "pintle::serde")]`.
pub use serde;
