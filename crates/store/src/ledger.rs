//! Names of ledgers.

use crate::error::StoreError;

/// Longest name of a ledger, in bytes.
const MAX_NAME: usize = 100;

/// Checks the name of a ledger: 1 to 100 letters, digits, `-` and `_`.
///
/// # Errors
///
/// [`StoreError::InvalidName`].
pub fn check_ledger_name(name: &str) -> Result<(), StoreError> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_known) {
        return Err(StoreError::InvalidName(name.to_owned()));
    }
    Ok(())
}
