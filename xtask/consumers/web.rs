//! Converts a page to Markdown, and creates a client for public addresses and one other host.

use pintle_web::{AddressRules, FetchLimits, HttpWebClient, to_markdown};

fn main() {
    assert_eq!(to_markdown("<h1>Title</h1><p>text", None), "# Title\n\ntext\n");
    let rules = AddressRules::public_only().with_host("intranet.example");
    let client = HttpWebClient::new(FetchLimits::default().with_redirects(2), rules);
    assert!(format!("{client:?}").contains("intranet.example"));
}
