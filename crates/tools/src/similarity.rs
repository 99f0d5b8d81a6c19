//! Suggestions of similar names, for "did you mean".

/// Minimum Jaro-Winkler similarity of a suggestion, where 1 is equality.
const MIN_SIMILARITY: f64 = 0.8;

/// Maximum number of suggested names.
const MAX_SUGGESTIONS: usize = 3;

/// Maximum length of a compared name, in bytes.
const MAX_LEN: usize = 512;

/// Returns the candidates that are most similar to `wanted`, the best first, each once, for "did you mean". Case is
/// ignored.
pub fn most_similar<T: AsRef<str>>(wanted: &str, candidates: impl Iterator<Item = T>) -> Vec<T> {
    if wanted.len() > MAX_LEN {
        return Vec::new();
    }
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(f64, T)> = candidates
        .map(|name| (strsim::jaro_winkler(&wanted, &name.as_ref().to_lowercase()), name))
        .filter(|(score, _)| *score >= MIN_SIMILARITY)
        .collect();
    scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut similar: Vec<T> = Vec::new();
    for (_, name) in scored {
        let is_new = similar.iter().all(|known| known.as_ref() != name.as_ref());
        if is_new && similar.len() < MAX_SUGGESTIONS {
            similar.push(name);
        }
    }
    similar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_names_are_suggested_best_first() {
        let names = ["read_file", "write_file", "read_many_files", "shell"];
        let cases: [(&str, &[&str]); 5] = [
            ("Read_File", &["read_file", "read_many_files"]),
            ("readfile", &["read_file", "read_many_files"]),
            ("shel", &["shell"]),
            ("xyz", &[]),
            ("", &[]),
        ];
        for (wanted, expected) in cases {
            assert_eq!(most_similar(wanted, names.into_iter()), expected, "{wanted}");
        }
        let twice = names.into_iter().chain(names);
        assert_eq!(most_similar("Read_File", twice), ["read_file", "read_many_files"], "each name once");
        assert!(most_similar(&"shell".repeat(200), names.into_iter()).is_empty());
    }
}
