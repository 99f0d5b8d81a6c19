//! Files that are not plain UTF-8 text with LF line ends.

use pintle_patch::ApplyErrorKind;

use crate::support::{Files, edited, ours, planned};

fn bytes(content: &[u8]) -> Files {
    [("f".to_owned(), content.to_vec())].into()
}

fn patched(content: &[u8], hunks: &str) -> Result<Vec<u8>, ApplyErrorKind> {
    let plan = planned(&bytes(content), &format!("*** Update File: f\n{hunks}"), &ours());
    let mut changes = plan.map_err(|error| *error.kind)?.changes;
    Ok(changes.remove(0).new.expect("an update keeps the file"))
}

#[test]
fn ascii_lines_of_another_encoding_are_patched() {
    let latin = b"caf\xE9\nprice = 1\n# \xA3\n";
    assert_eq!(patched(latin, "@@\n-price = 1\n+price = 2"), Ok(b"caf\xE9\nprice = 2\n# \xA3\n".to_vec()));
    assert_eq!(patched(latin, "@@\n-  price = 1  \n+  p"), Ok(b"caf\xE9\np\n# \xA3\n".to_vec()));
}

#[test]
fn non_ascii_hunks_are_refused_in_another_encoding() {
    for hunks in ["@@\n-café\n+x", "@@\n-price = 1\n+£", "@@ café\n-price = 1\n+x"] {
        let found = patched(b"caf\xE9\nprice = 1\n", hunks).unwrap_err();
        assert!(matches!(found, ApplyErrorKind::NotUtf8 { .. }), "{found}");
    }
}

#[test]
fn utf_16_is_refused() {
    for content in [&b"\xFF\xFEa\0\n\0"[..], b"\xFE\xFF\0a\0\n"] {
        assert_eq!(patched(content, "@@\n-a\n+b"), Err(ApplyErrorKind::Utf16));
    }
}

#[test]
fn nul_bytes_are_ordinary_bytes() {
    assert_eq!(patched(b"\0\0\nx\n", "@@\n-x\n+y"), Ok(b"\0\0\ny\n".to_vec()));
}

#[test]
fn a_carriage_return_within_a_patch_line_ends_a_line() {
    let patched = edited("a\rb\nc\n", "@@\n-a\rb\n+x\n c", &ours());
    assert_eq!(patched.as_deref(), Ok("x\rc\n"));
}

#[test]
fn all_lines_can_be_removed() {
    assert_eq!(edited("a\nb\n", "@@\n-a\n-b", &ours()).as_deref(), Ok(""));
}
