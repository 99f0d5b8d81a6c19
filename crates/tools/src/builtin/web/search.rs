//! Queries and results of web searches.

/// A web search.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchQuery {
    /// The search words.
    pub query: String,
    /// Maximum number of hits to return.
    pub max_results: usize,
    /// If not empty, only pages of these domains and their subdomains are returned.
    pub allowed_domains: Vec<String>,
    /// Pages of these domains and their subdomains are not returned.
    pub blocked_domains: Vec<String>,
}

/// The results of a web search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchResults {
    /// The search engine's own answer, if it gives one.
    pub answer: Option<String>,
    /// The pages, the best first.
    pub hits: Vec<SearchHit>,
}

/// One hit of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchHit {
    /// The title of the page.
    pub title: String,
    /// Its URL.
    pub url: String,
    /// An excerpt of a few lines; may be empty.
    pub snippet: String,
}

impl SearchQuery {
    /// Creates a search for these words, with at most `max_results` hits.
    #[must_use]
    pub fn new(query: impl Into<String>, max_results: usize) -> Self {
        Self { query: query.into(), max_results, allowed_domains: Vec::new(), blocked_domains: Vec::new() }
    }

    /// Sets the allowed and blocked domains.
    #[must_use]
    pub fn with_domains(mut self, allowed: Vec<String>, blocked: Vec<String>) -> Self {
        (self.allowed_domains, self.blocked_domains) = (allowed, blocked);
        self
    }

    /// Returns whether the domain of a page is allowed. The tools remove other hits, so clients need not do that.
    #[must_use]
    pub fn wants(&self, url: &str) -> bool {
        let host = host_of(url);
        let is_within = |domain: &String| {
            let domain = domain.trim().trim_start_matches('.').to_ascii_lowercase();
            let rest = host.strip_suffix(&domain);
            !domain.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let allowed = self.allowed_domains.is_empty() || self.allowed_domains.iter().any(is_within);
        allowed && !self.blocked_domains.iter().any(is_within)
    }
}

impl SearchResults {
    /// Creates results with these hits.
    #[must_use]
    pub fn new(hits: Vec<SearchHit>) -> Self {
        Self { answer: None, hits }
    }

    /// Sets the search engine's own answer.
    #[must_use]
    pub fn with_answer(mut self, answer: impl Into<String>) -> Self {
        self.answer = Some(answer.into());
        self
    }
}

impl SearchHit {
    /// Creates a hit with its title, URL and excerpt.
    #[must_use]
    pub fn new(title: impl Into<String>, url: impl Into<String>, snippet: impl Into<String>) -> Self {
        Self { title: title.into(), url: url.into(), snippet: snippet.into() }
    }
}

/// Returns the host of a URL in lower case; empty if it has none.
fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_scheme, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_user, host)| host);
    let host = host.split_once(':').map_or(host, |(host, _port)| host);
    host.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_filtered_by_domain() {
        let cases: [(&str, &[&str], &[&str], bool); 10] = [
            ("https://docs.rs/serde", &[], &[], true),
            ("https://docs.rs/serde", &["docs.rs"], &[], true),
            ("https://Docs.RS:443/serde", &["docs.rs"], &[], true),
            ("https://a.docs.rs./", &["docs.rs"], &[], true),
            ("https://notdocs.rs/", &["docs.rs"], &[], false),
            ("https://docs.rs@evil.example/", &["docs.rs"], &[], false),
            ("https://evil.example/?docs.rs", &["docs.rs"], &[], false),
            ("https://www.example.com/", &[], &["example.com"], false),
            ("https://www.example.com/", &["example.com"], &["www.example.com"], false),
            ("no address", &["docs.rs"], &[], false),
        ];
        for (url, allowed, blocked, expected) in cases {
            let owned = |domains: &[&str]| domains.iter().map(|domain| (*domain).to_owned()).collect();
            let query = SearchQuery::new("q", 1).with_domains(owned(allowed), owned(blocked));
            assert_eq!(query.wants(url), expected, "{url} {allowed:?} {blocked:?}");
        }
    }
}
