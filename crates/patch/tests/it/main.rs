//! Tests of parsing and planning through the public API.

#[cfg(test)]
mod bytes;
#[cfg(test)]
mod deletions;
#[cfg(test)]
mod indentation;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod stream;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tree;
