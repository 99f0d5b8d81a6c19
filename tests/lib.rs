//! Empty: the tests are in `it/`, and the examples of the README and of the guide are compiled here.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide/embedding.md")]
mod embedding {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide/sessions.md")]
mod sessions {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide/tool.md")]
mod tool {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide/provider.md")]
mod provider {}
