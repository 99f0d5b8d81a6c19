//! OAuth for servers behind a URL: a user logs in once, and sessions use and renew the tokens.

mod authority;
mod callback;
mod client;
mod login;
mod oauth_http;
mod post;
#[cfg(test)]
mod tests;
mod tokens;

pub(crate) use authority::TokenAuthority;
pub(crate) use client::AuthorizedClient;
pub use login::{LoginError, LoginErrorKind, login};
pub use tokens::{MemoryTokens, ServerTokens, TokenLock, TokenStore};
