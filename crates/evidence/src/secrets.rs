//! Secrets in added lines.

use pintle_env::Redactions;

/// Known key formats: the prefix, and the minimum number of further characters.
const FORMS: [(&str, usize); 16] = [
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 35),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghs_", 30),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("sk-ant-", 20),
    ("sk-proj-", 20),
    ("sk_live_", 20),
    ("rk_live_", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("npm_", 36),
    ("pypi-AgEI", 20),
];

/// Returns the files of a patch that add a probable secret: a value in `known`, a key in a common format, or a private key.
#[must_use]
pub fn find_in_patch(patch: &[u8], known: &Redactions) -> Vec<String> {
    let text = String::from_utf8_lossy(patch);
    let mut files: Vec<String> = Vec::new();
    let mut path = String::new();
    for line in text.lines() {
        if let Some(found) = line.strip_prefix("+++ ") {
            path = found.strip_prefix("b/").unwrap_or(found).to_owned();
        } else if line.starts_with('+') && has_secret(line, known) && files.last() != Some(&path) {
            files.push(path.clone());
        }
    }
    files
}

fn has_secret(line: &str, known: &Redactions) -> bool {
    known.text(line) != line
        || line.contains("-----BEGIN ") && line.contains("PRIVATE KEY")
        || FORMS.iter().any(|(start, more)| has_key(line, start, *more))
}

fn has_key(line: &str, start: &str, more: usize) -> bool {
    let is_of_key = |character: &char| character.is_ascii_alphanumeric() || "-_".contains(*character);
    line.match_indices(start).any(|(index, _)| {
        let is_begun = line.get(..index).and_then(|before| before.chars().next_back());
        let rest = line.get(index + start.len()..).unwrap_or_default();
        is_begun.is_none_or(|before| !before.is_ascii_alphanumeric())
            && rest.chars().take_while(is_of_key).count() >= more
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_what_was_added() {
        let key = format!("AK{}{}", "IA", "ABCDEFGHIJKLMNOP");
        for (line, expected) in [
            (format!("+key = \"{key}\""), true),
            (format!("-key = \"{key}\""), false),
            (format!(" key = \"{key}\""), false),
            ("+key = \"AKIA\"".to_owned(), false),
            (format!("+x = M{key}"), false),
            (format!("+-----BEGIN {} KEY-----", "RSA PRIVATE"), true),
            ("+my own words".to_owned(), true),
            ("+task_sk-ant-".to_owned(), false),
        ] {
            let patch = format!("diff --git a/a b/b\n--- a/a\n+++ b/src/x.py\n@@ -1 +1 @@\n{line}\n");
            let found = find_in_patch(patch.as_bytes(), &Redactions::new(["my own words", ""]));
            let expected: Vec<&str> = if expected { vec!["src/x.py"] } else { vec![] };
            assert_eq!(found, expected, "{line}");
        }
    }
}
