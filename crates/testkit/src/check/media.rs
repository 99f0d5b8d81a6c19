//! Rules for binary data in JSON, shared by all providers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::report::Report;

/// Image types that every provider supports.
pub(super) const IMAGES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Reports a text that is empty or not standard base64 with padding.
pub(super) fn base64(path: &str, text: &str, report: &mut Report) {
    if text.is_empty() || STANDARD.decode(text).is_err() {
        report.invalid(path, "expected the bytes in base64, and at least one of them");
    }
}

/// Reports a data URI that is not `data:TYPE;base64,BYTES`, or whose type is not in `types`, if that is not empty.
///
/// Other URLs are not checked.
pub(super) fn data_uri(path: &str, url: &str, types: &[&str], report: &mut Report) {
    let Some(rest) = url.strip_prefix("data:") else {
        return;
    };
    let Some((kind, data)) = rest.split_once(";base64,") else {
        report.invalid(path, "expected data:TYPE;base64,BYTES");
        return;
    };
    if !types.is_empty() && !types.contains(&kind) {
        report.invalid(path, format!("found the type {kind:?}, expected one of {}", types.join(", ")));
    }
    base64(path, data, report);
}
