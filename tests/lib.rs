//! Empty: the tests are in `it/`, and the README's example is compiled here.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
