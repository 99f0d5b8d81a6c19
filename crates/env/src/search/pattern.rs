//! Globs that select the files to find or to search.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::SearchScope;
use super::base::{SPECIAL, split_base};
use crate::{error::EnvError, file::MAX_ENTRIES, path::resolve};

/// A glob with its base directory.
#[derive(Clone, Debug)]
pub(crate) struct GlobPattern {
    /// The directory to search: the root plus the names before the first wildcard.
    pub(crate) base: PathBuf,
    /// Maximum depth of a match below the base, if bounded.
    pub(crate) max_depth: Option<usize>,
    /// Whether it is the path of one file.
    is_path: bool,
    matcher: Matcher,
}

impl GlobPattern {
    /// Parses a glob that is relative to `root`, absolute, or below `home` if it starts with `~/`.
    pub(crate) fn parse(pattern: &str, root: &Path, home: Option<&Path>) -> Result<Self, EnvError> {
        if pattern.is_empty() {
            return Err(EnvError::invalid_pattern(pattern, "the glob is empty"));
        }
        let (prefix, rest) = split_base(pattern);
        let max_depth = (!rest.contains("**")).then(|| rest.matches('/').count() + 1);
        Ok(Self {
            base: resolve(Path::new(prefix), root, home),
            max_depth,
            is_path: !pattern.contains(SPECIAL),
            matcher: Matcher::compile(rest).map_err(|error| EnvError::invalid_pattern(pattern, error))?,
        })
    }

    /// Returns the scope of a search for the glob: a file that it names is found whatever its name and the ignore rules.
    pub(crate) fn scope(&self, scope: SearchScope) -> SearchScope {
        if self.is_path { scope.with_hidden(true).with_ignored(true) } else { scope }
    }

    /// Returns true if a path below the base matches.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        path.strip_prefix(&self.base).is_ok_and(|relative| self.matcher.is_match(relative))
    }

    /// Fails if there are more results than one search may return.
    pub(crate) fn check_count(&self, found: usize) -> Result<(), EnvError> {
        if found <= MAX_ENTRIES {
            return Ok(());
        }
        Err(EnvError::TooManyEntries { path: self.base.clone(), limit: MAX_ENTRIES })
    }
}

/// A filter on the files of a content search: globs that select files, and negated ones that leave files out.
#[derive(Clone, Debug)]
pub(crate) struct FileFilter {
    globs: Vec<FilterGlob>,
}

/// A glob of a filter.
#[derive(Clone, Debug)]
struct FilterGlob {
    matcher: Matcher,
    /// Match the relative path rather than the name.
    anchored: bool,
    negated: bool,
}

impl FileFilter {
    /// Parses a filter: globs separated by commas, each negated by a leading `!`.
    pub(crate) fn parse(filter: &str) -> Result<Self, EnvError> {
        let parts = separated(filter);
        if parts.len() < 2 {
            return Ok(Self { globs: vec![FilterGlob::parse(filter)?] });
        }
        let mut globs = parts.into_iter().map(FilterGlob::parse).collect::<Result<Vec<_>, _>>()?;
        if !filter.starts_with('!') {
            // Names can contain commas.
            globs.extend(FilterGlob::parse(filter).ok());
        }
        Ok(Self { globs })
    }

    /// Returns true if a file passes; `relative` is its path below the searched directory.
    pub(crate) fn admits(&self, relative: &Path) -> bool {
        let (negated, selecting): (Vec<_>, Vec<_>) = self.globs.iter().partition(|glob| glob.negated);
        let is_match = |globs: &[&FilterGlob]| globs.iter().any(|glob| glob.is_match(relative));
        (selecting.is_empty() || is_match(&selecting)) && !is_match(&negated)
    }
}

impl FilterGlob {
    fn parse(filter: &str) -> Result<Self, EnvError> {
        let glob = filter.strip_prefix('!').unwrap_or(filter);
        let negated = glob.len() < filter.len();
        let anchored = glob.contains('/');
        let relative = glob.strip_prefix('/').unwrap_or(glob);
        Ok(Self {
            matcher: Matcher::compile(relative).map_err(|error| EnvError::invalid_pattern(filter, error))?,
            anchored,
            negated,
        })
    }

    fn is_match(&self, relative: &Path) -> bool {
        if self.anchored {
            self.matcher.is_match(relative)
        } else {
            relative.file_name().is_some_and(|name| self.matcher.is_match(name))
        }
    }
}

/// Splits a filter at its commas outside of braces and brackets.
fn separated(filter: &str) -> Vec<&str> {
    let (mut braces, mut is_class, mut is_escaped) = (0_usize, false, false);
    let is_separator = |character: char| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match character {
            _ if was_escaped => {}
            '\\' => is_escaped = true,
            '[' => is_class = true,
            ']' => is_class = false,
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            ',' => return braces == 0 && !is_class,
            _ => {}
        }
        false
    };
    filter.split(is_separator).map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// A glob that also takes its brackets literally: many projects have directories named `[id]` or `[...slug]`, and a path
/// that names one is given as a glob.
#[derive(Clone, Debug)]
struct Matcher {
    /// `None` if it is valid with literal brackets only.
    classes: Option<GlobMatcher>,
    /// `None` without brackets that close.
    literal: Option<GlobMatcher>,
}

impl Matcher {
    fn compile(glob: &str) -> Result<Self, globset::Error> {
        let literal = with_literal_brackets(glob).and_then(|glob| compile(&glob).ok());
        match compile(glob) {
            Ok(classes) => Ok(Self { classes: Some(classes), literal }),
            Err(_) if literal.is_some() => Ok(Self { classes: None, literal }),
            Err(error) => Err(error),
        }
    }

    fn is_match(&self, path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
        [&self.classes, &self.literal].into_iter().flatten().any(|glob| glob.is_match(path))
    }
}

/// Returns a glob in which brackets are literal; `None` without brackets, or if they do not pair.
fn with_literal_brackets(glob: &str) -> Option<String> {
    let (mut literal, mut open, mut has_brackets) = (String::new(), 0_usize, false);
    let mut characters = glob.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                literal.push('\\');
                literal.extend(characters.next());
            }
            '[' => {
                (open, has_brackets) = (open + 1, true);
                literal.push_str("[[]");
            }
            ']' => {
                open = open.checked_sub(1)?;
                literal.push_str("[]]");
            }
            other => literal.push(other),
        }
    }
    (has_brackets && open == 0).then_some(literal)
}

fn compile(glob: &str) -> Result<GlobMatcher, globset::Error> {
    GlobBuilder::new(glob).literal_separator(true).build().map(|glob| glob.compile_matcher())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::GlobRequest;

    #[test]
    fn literal_prefixes_select_the_base() {
        for (pattern, base, depth, hit) in [
            ("*.rs", "/r", Some(1), "/r/a.rs"),
            ("**/*.rs", "/r", None, "/r/a.rs"),
            ("src/**/*.rs", "/r/src", None, "/r/src/x/y/a.rs"),
            ("src/*/a.rs", "/r/src", Some(2), "/r/src/x/a.rs"),
            ("src/a.rs", "/r/src", Some(1), "/r/src/a.rs"),
            ("/abs/*.rs", "/abs", Some(1), "/abs/a.rs"),
            ("~/*.rs", "/users/me", Some(1), "/users/me/a.rs"),
            ("./~/*.rs", "/r/~", Some(1), "/r/~/a.rs"),
            ("./x/../*.rs", "/r", Some(1), "/r/a.rs"),
            ("{a,b/c}/*", "/r", Some(3), "/r/b/c/d"),
            ("[ab].rs", "/r", Some(1), "/r/b.rs"),
            (r"k\eys/*", "/r", Some(2), "/r/keys/a"),
        ] {
            let glob = GlobPattern::parse(pattern, Path::new("/r"), Some(Path::new("/users/me"))).unwrap();
            assert_eq!(glob.base, Path::new(base), "{pattern}");
            let request = GlobRequest::new(pattern);
            assert_eq!(request.base(Path::new("/r"), Some(Path::new("/users/me"))), glob.base, "{pattern}");
            assert_eq!(glob.max_depth, depth, "{pattern}");
            assert!(glob.matches(Path::new(hit)), "{pattern}");
        }
    }

    #[test]
    fn a_star_stays_within_one_name() {
        let glob = GlobPattern::parse("*.rs", Path::new("/r"), None).unwrap();
        assert!(!glob.matches(Path::new("/r/src/a.rs")));
    }

    #[test]
    fn invalid_globs_are_refused() {
        for pattern in ["", "a[", "{a"] {
            let error = GlobPattern::parse(pattern, Path::new("/r"), None).unwrap_err();
            assert!(matches!(error, EnvError::InvalidPattern { .. }), "{pattern}");
        }
    }

    #[test]
    fn brackets_are_classes_and_names() {
        for (pattern, path, matches) in [
            ("app/[id]/page.tsx", "/r/app/[id]/page.tsx", true),
            ("app/[id]/page.tsx", "/r/app/i/page.tsx", true),
            ("app/[id]/page.tsx", "/r/app/id/page.tsx", false),
            ("app/docs/[...slug]/*.tsx", "/r/app/docs/[...slug]/page.tsx", true),
            // As a class, it is an invalid range.
            ("app/[[...sign-in]]/page.tsx", "/r/app/[[...sign-in]]/page.tsx", true),
            ("**/[id]/*.tsx", "/r/a/b/[id]/page.tsx", true),
            ("{a,[id]}/x", "/r/[id]/x", true),
            ("[!a].rs", "/r/b.rs", true),
            (r"\[id\]/x", "/r/[id]/x", true),
            (r"\[id\]/x", "/r/i/x", false),
            ("[]a].rs", "/r/].rs", true),
        ] {
            let glob = GlobPattern::parse(pattern, Path::new("/r"), None).unwrap();
            assert_eq!(glob.matches(Path::new(path)), matches, "{pattern} {path}");
        }
    }

    #[test]
    fn filters_match_names_or_paths() {
        for (filter, path, admitted) in [
            ("*.py", "a/b/c.py", true),
            ("*.py", "a/b/c.rs", false),
            ("!*.py", "a/c.py", false),
            ("!*.py", "a/c.rs", true),
            ("a/*.py", "a/c.py", true),
            ("a/*.py", "a/b/c.py", false),
            ("/*.py", "c.py", true),
            ("/*.py", "a/c.py", false),
            ("**/*.{py,rs}", "c.rs", true),
            ("app/[id]/*.tsx", "app/[id]/page.tsx", true),
            ("!app/[id]/*.tsx", "app/[id]/page.tsx", false),
            ("*.ts,*.tsx", "a/b.tsx", true),
            ("*.ts, *.tsx", "a/b.ts", true),
            ("*.ts,*.tsx", "a/b.rs", false),
            ("*.ts,!b.*", "a/b.ts", false),
            ("*.ts,!b.*", "a/c.ts", true),
            ("!*.ts,!*.tsx", "a.tsx", false),
            ("!*.ts,!*.tsx", "a.rs", true),
            ("*.{ts,tsx},src/*.js", "src/a.js", true),
            ("*.{ts,tsx},src/*.js", "lib/a.js", false),
            ("[a,b].rs", "b.rs", true),
            ("a,b.txt", "a,b.txt", true),
            (r"a\,b.txt", "b.txt", false),
        ] {
            let parsed = FileFilter::parse(filter).unwrap();
            assert_eq!(parsed.admits(Path::new(path)), admitted, "{filter} {path}");
        }
    }
}
