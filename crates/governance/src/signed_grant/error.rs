//! Reasons why a chain of signed grants is not valid.

use pintle_agent::Timestamp;

use super::{PublicKey, SignedChain, UnsignableNumber};
use crate::grant::{Axis, GrantError};

/// Reason why a chain of signed grants is not valid. Positions count from 1, the grant of the root.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// The text is too long.
    #[error("the signed grant has {bytes} bytes, and at most {} are read", SignedChain::MAX_BYTES)]
    Size {
        /// Length of the text.
        bytes: usize,
    },
    /// The text does not have the form of a chain.
    #[error("it is not a signed grant")]
    Form(#[source] serde_json::Error),
    /// The chain has another version.
    #[error("the signed grant has version {found}, expected {}", SignedChain::VERSION)]
    Version {
        /// Version of the chain.
        found: u64,
    },
    /// The chain has no grant.
    #[error("the chain has no grant")]
    Empty,
    /// The chain has too many grants.
    #[error("the chain has {grants} grants, and at most {} are read", SignedChain::MAX_GRANTS)]
    TooLong {
        /// Number of grants.
        grants: usize,
    },
    /// The first grant names ancestors, which are not in the chain.
    #[error("grant 1 of the chain has ancestors")]
    Ancestors,
    /// A key signed two grants of the chain.
    #[error("grant {position} of the chain has the issuer of an earlier one")]
    Loop {
        /// Position of the second grant.
        position: usize,
    },
    /// The signature is not one of the issuer and these claims.
    #[error("the signature of grant {position} is not valid")]
    Signature {
        /// Position of the grant.
        position: usize,
    },
    /// A number cannot be signed.
    #[error(transparent)]
    Number(#[from] UnsignableNumber),
    /// The subject or the audience is empty.
    #[error("grant {position} of the chain has no subject or no audience")]
    NoParty {
        /// Position of the grant.
        position: usize,
    },
    /// The grant itself is not valid.
    #[error("grant {position} of the chain is wrong")]
    Grant {
        /// Position of the grant.
        position: usize,
        /// The mistake.
        source: GrantError,
    },
    /// The issuer is not the holder of the previous grant.
    #[error("the issuer of grant {position} is not the holder of the grant before it")]
    Holder {
        /// Position of the grant.
        position: usize,
    },
    /// The audience has a member that the previous grant does not have.
    #[error("grant {position} exceeds the grant before it: audience")]
    WiderAudience {
        /// Position of the grant.
        position: usize,
    },
    /// The grant allows more than the previous one.
    #[error("grant {position} exceeds the grant before it: {axis}")]
    Exceeds {
        /// Position of the grant.
        position: usize,
        /// The part that exceeds it.
        axis: Axis,
    },
    /// The issuer of the first grant is not pinned.
    #[error("the issuer of the first grant, {0}, is not a pinned root")]
    Root(PublicKey),
    /// The grant is for other servers and stores.
    #[error("the grant is for {0}")]
    Audience(String),
    /// The grant is for another user.
    #[error("the grant is for the user `{0}`")]
    Subject(String),
    /// The window has not started.
    #[error("the grant is not valid before {0}")]
    NotYet(Timestamp),
    /// The window has ended.
    #[error("the grant expired at {0}")]
    Expired(Timestamp),
}
