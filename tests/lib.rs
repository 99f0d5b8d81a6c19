//! The tests are in `it/`. The examples of the README and of the guide are compiled here.

/// The environment of the guide. It is in the library, whose unit tests do not run: the tests of `pintle-env` check it
/// against the contract.
#[path = "../crates/env/examples/own_environment.rs"]
#[expect(dead_code, reason = "an example is a program")]
pub mod own_environment;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide/embedding.md")]
mod embedding {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide/environment.md")]
mod environment {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide/loop.md")]
mod how_the_loop_works {}

#[cfg(doctest)]
#[doc = include_str!("../docs/reference/record.md")]
mod record {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide/sessions.md")]
mod sessions {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide/tool.md")]
mod tool {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide/provider.md")]
mod provider {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide/chat-backend.md")]
mod chat_backend {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide/issue-bot.md")]
mod issue_bot {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide/testing.md")]
mod testing {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide/observability.md")]
mod observability {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide/migrating.md")]
mod migrating {}
