//! `Retry-After`.
