//! Decoding of response bodies to text.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use html5gum::{Token, Tokenizer};

/// Length of the prefix, in bytes, that is searched for a `<meta>` declaration, as in browsers.
const SNIFFED: usize = 1024;

/// Decodes `bytes` in the encoding of their byte-order mark, else of `content_type`, else of the page's own `<meta>`
/// declaration, else as UTF-8.
///
/// Labels follow the Encoding Standard. An unknown label is ignored, and malformed bytes become U+FFFD.
pub(crate) fn decode(bytes: &[u8], content_type: &str, is_html: bool) -> String {
    let declared = label(content_type).and_then(|label| Encoding::for_label(label.as_bytes()));
    let encoding = declared.or_else(|| is_html.then(|| meta_encoding(bytes)).flatten()).unwrap_or(UTF_8);
    encoding.decode(bytes).0.into_owned()
}

/// Returns the encoding that a page declares by `<meta charset=…>` or `<meta http-equiv=Content-Type content=…>`.
fn meta_encoding(page: &[u8]) -> Option<&'static Encoding> {
    let head = page.get(..SNIFFED).unwrap_or(page);
    let encoding = Tokenizer::new(head).filter_map(Result::ok).find_map(|token| {
        let Token::StartTag(tag) = token else { return None };
        let attribute = |name: &[u8]| Some(String::from_utf8_lossy(tag.attributes.get(name)?).into_owned());
        let declared = || attribute(b"charset").or_else(|| Some(label(&attribute(b"content")?)?.to_owned()));
        let label = (tag.name == b"meta").then(declared)??;
        Encoding::for_label(label.as_bytes())
    })?;
    // The declaration was readable as ASCII, so the page cannot be in UTF-16.
    Some(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}

/// Returns the value of the parameter `charset` of a media type.
fn label(content_type: &str) -> Option<&str> {
    let at = content_type.to_ascii_lowercase().find("charset=")? + "charset=".len();
    let value = content_type.get(at..)?.trim_start_matches(['"', '\'', ' ']);
    value.split(['"', '\'', ' ', ';', ',']).next().filter(|label| !label.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_precedes_meta_and_utf_8_is_the_default() {
        let meta = b"<meta charset='ISO-8859-1'>caf\xE9";
        let cases: [(&[u8], &str, bool, &str); 9] = [
            ("café".as_bytes(), "text/plain", false, "café"),
            (b"caf\xE9", "text/plain; charset=ISO-8859-1", false, "café"),
            (b"\x80 \x93a\x94 \x81", "text/plain;charset=\"windows-1252\"", false, "€ “a” \u{81}"),
            (b"\xA4", "text/plain; charset=iso-8859-15", false, "€"),
            (meta, "text/html", true, "<meta charset='ISO-8859-1'>café"),
            (meta, "text/html; charset=utf-8", true, "<meta charset='ISO-8859-1'>caf\u{FFFD}"),
            (meta, "text/plain", false, "<meta charset='ISO-8859-1'>caf\u{FFFD}"),
            (b"\xEF\xBB\xBFa", "", false, "a"),
            (b"a\xFF", "text/plain; charset=klingon", false, "a\u{FFFD}"),
        ];
        for (bytes, content_type, is_html, expected) in cases {
            assert_eq!(decode(bytes, content_type, is_html), expected, "{content_type}");
        }
    }

    #[test]
    fn shift_jis_and_gbk_are_decoded() {
        // "日本語" in Shift_JIS and "中文" in GBK.
        let cases: [(&str, &[u8], &str); 2] =
            [("Shift_JIS", b"\x93\xFA\x96\x7B\x8C\xEA", "日本語"), ("GBK", b"\xD6\xD0\xCE\xC4", "中文")];
        for (label, bytes, expected) in cases {
            assert_eq!(decode(bytes, &format!("text/plain; charset={label}"), false), expected);
            let http_equiv = format!("<meta http-equiv=Content-Type content='text/html; charset={label}'>");
            for meta in [format!("<meta charset=\"{label}\">"), http_equiv] {
                let page = [meta.as_bytes(), bytes].concat();
                assert_eq!(decode(&page, "text/html", true), format!("{meta}{expected}"));
            }
        }
    }

    #[test]
    fn only_meta_elements_declare_an_encoding() {
        let pages: [&[u8]; 3] = [
            b"<!-- <meta charset=gbk> -->\xC3\xA9",
            b"<script charset=gbk></script>\xC3\xA9",
            b"<meta charset=utf-16>\xC3\xA9",
        ];
        for page in pages {
            assert_eq!(decode(page, "text/html", true), String::from_utf8_lossy(page));
        }
        let late = [" ".repeat(SNIFFED).as_bytes(), b"<meta charset=gbk>\xC3\xA9"].concat();
        assert!(decode(&late, "text/html", true).ends_with('é'));
    }

    #[test]
    fn byte_order_marks_precede_everything() {
        assert_eq!(decode(b"\xFF\xFEa\0", "text/plain; charset=utf-8", false), "a");
        assert_eq!(decode(b"\xEF\xBB\xBF\xC3\xA9", "text/plain; charset=gbk", false), "é");
    }
}
