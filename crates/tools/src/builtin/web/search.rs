//! What is searched for, and what is found.

/// What to search for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchQuery {
    /// The words.
    pub query: String,
    /// The most hits wanted.
    pub max_results: usize,
    /// If there are any, only pages of these domains and those below them are wanted.
    pub allowed_domains: Vec<String>,
    /// Pages of these domains and those below them are not wanted.
    pub blocked_domains: Vec<String>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchResults {
    /// What the engine itself says to the question, if it is one that does.
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
    /// Its address.
    pub url: String,
    /// What stands there, in a few lines; may be empty.
    pub snippet: String,
}

impl SearchQuery {
    /// These words, and at most so many hits.
    #[must_use]
    pub fn new(query: impl Into<String>, max_results: usize) -> Self {
        Self { query: query.into(), max_results, allowed_domains: Vec::new(), blocked_domains: Vec::new() }
    }

    /// With domains that pages must be of, and domains that they must not be of.
    #[must_use]
    pub fn with_domains(mut self, allowed: Vec<String>, blocked: Vec<String>) -> Self {
        (self.allowed_domains, self.blocked_domains) = (allowed, blocked);
        self
    }

    /// Whether a page is of a domain that is wanted. The tools leave out what is not, so that an engine need not.
    #[must_use]
    pub fn wants(&self, url: &str) -> bool {
        let host = host_of(url);
        let is_below = |domain: &String| {
            let domain = domain.trim().trim_start_matches('.').to_ascii_lowercase();
            let rest = host.strip_suffix(&domain);
            !domain.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let allowed = self.allowed_domains.is_empty() || self.allowed_domains.iter().any(is_below);
        allowed && !self.blocked_domains.iter().any(is_below)
    }
}

impl SearchResults {
    /// These hits.
    #[must_use]
    pub fn new(hits: Vec<SearchHit>) -> Self {
        Self { answer: None, hits }
    }

    /// With what the engine says to the question.
    #[must_use]
    pub fn with_answer(mut self, answer: impl Into<String>) -> Self {
        self.answer = Some(answer.into());
        self
    }
}

impl SearchHit {
    /// A hit.
    #[must_use]
    pub fn new(title: impl Into<String>, url: impl Into<String>, snippet: impl Into<String>) -> Self {
        Self { title: title.into(), url: url.into(), snippet: snippet.into() }
    }
}

/// The host of an address in lower case; empty if it has none.
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
    fn pages_are_wanted_by_their_domain() {
        let rows: [(&str, &[&str], &[&str], bool); 10] = [
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
        for (url, allowed, blocked, expected) in rows {
            let owned = |domains: &[&str]| domains.iter().map(|domain| (*domain).to_owned()).collect();
            let query = SearchQuery::new("q", 1).with_domains(owned(allowed), owned(blocked));
            assert_eq!(query.wants(url), expected, "{url} {allowed:?} {blocked:?}");
        }
    }
}
