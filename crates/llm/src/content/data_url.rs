//! `data:` URLs (RFC 2397).

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// A decoded `data:` URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DataUrl {
    /// `None` if the URL has none.
    pub(super) media_type: Option<String>,
    pub(super) bytes: Vec<u8>,
}

const SCHEME: &str = "data:";

/// Standard base64; padding is optional, as in browsers.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl DataUrl {
    /// Returns `true` for a URL of this scheme.
    pub(super) fn is_one(url: &str) -> bool {
        url.get(..SCHEME.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
    }

    /// Decodes a URL; `None` if it is malformed.
    pub(super) fn parse(url: &str) -> Option<Self> {
        let (header, data) = url.get(SCHEME.len()..)?.split_once(',')?;
        let mut parameters = header.split(';');
        let media_type = parameters.next().map(str::trim).filter(|media_type| !media_type.is_empty());
        let is_base64 = parameters.any(|parameter| parameter.trim().eq_ignore_ascii_case("base64"));
        let bytes = percent_decoded(data)?;
        let bytes = if is_base64 {
            let text: Vec<u8> = bytes.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
            BASE64.decode(text).ok()?
        } else {
            bytes
        };
        Some(Self { media_type: media_type.map(str::to_ascii_lowercase), bytes })
    }
}

/// Resolves `%XX`; `None` for an incomplete one.
fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    if !text.contains('%') {
        return Some(text.as_bytes().to_vec());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let (digits, after) = after.split_at_checked(2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_and_percent_encoding_are_decoded() {
        let cases: [(&str, Option<&str>, &[u8]); 8] = [
            ("data:image/png;base64,AQL/", Some("image/png"), &[1, 2, 255]),
            ("DATA:Image/PNG;Base64,AQ==", Some("image/png"), &[1]),
            ("data:image/png;base64,AQ", Some("image/png"), &[1]),
            ("data:text/plain;charset=utf-8;base64,aGk=", Some("text/plain"), b"hi"),
            ("data:;base64,AQ%3D%3D", None, &[1]),
            ("data:image/png;base64,AQ L\n/", Some("image/png"), &[1, 2, 255]),
            ("data:,a%20b,c", None, b"a b,c"),
            ("data:text/plain,", Some("text/plain"), b""),
        ];
        for (url, media_type, bytes) in cases {
            assert!(DataUrl::is_one(url));
            let expected = DataUrl { media_type: media_type.map(str::to_owned), bytes: bytes.to_vec() };
            assert_eq!(DataUrl::parse(url), Some(expected), "{url}");
        }
    }

    #[test]
    fn malformed_urls_are_refused() {
        for url in
            ["data:", "data:image/png;base64", "data:;base64,A", "data:;base64,*", "data:,%4", "data:,%+4"]
        {
            assert_eq!(DataUrl::parse(url), None, "{url}");
        }
        for url in ["https://example.com/a.png", "/tmp/data:", "dat", "dätä:,"] {
            assert!(!DataUrl::is_one(url), "{url}");
        }
    }
}
