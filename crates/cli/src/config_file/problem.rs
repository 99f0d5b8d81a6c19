//! Mistakes in the configuration.

use std::fmt;

use crate::console;
use crate::failure::{Failure, FailureKind};

/// Most mistakes that are listed.
const MAX_LISTED: usize = 20;

/// Mistake in a file, or in an environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// File with line and column, or variable.
    pub(crate) origin: String,
    /// The value found, and the one expected.
    pub(crate) message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.message)
    }
}

/// Reports the mistakes as notices if `are_ignored` is set.
///
/// Otherwise, any mistakes are a usage failure that contains all of them.
pub(crate) fn report(problems: &[Problem], are_ignored: bool) -> Result<(), Failure> {
    if are_ignored {
        for problem in problems.iter().take(MAX_LISTED) {
            console::notice(&format!("ignored: {problem}"));
        }
        return Ok(());
    }
    failure(problems).map_or(Ok(()), |failure| {
        Err(failure.with_hint("`--ignore-config-errors` runs with the rest of the configuration"))
    })
}

/// Returns a usage failure with all mistakes; `None` without any.
pub(crate) fn failure(problems: &[Problem]) -> Option<Failure> {
    let (first, others) = problems.split_first()?;
    if others.is_empty() {
        return Some(Failure::usage(format!("the configuration is wrong: {first}")));
    }
    let mut text = format!("the configuration has {} mistakes\n", problems.len());
    for problem in problems.iter().take(MAX_LISTED) {
        text.push_str(&format!("  {problem}\n"));
    }
    if problems.len() > MAX_LISTED {
        text.push_str(&format!("  and {} more\n", problems.len() - MAX_LISTED));
    }
    Some(Failure::multi_line(FailureKind::Usage, &text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_problem_is_the_message_and_more_are_listed() {
        let problem = |number| Problem { origin: format!("f: line {number}"), message: "bad".to_owned() };
        assert_eq!(failure(&[]), None);
        let one = failure(&[problem(1)]).unwrap();
        assert_eq!(one.message(), "the configuration is wrong: f: line 1: bad");
        let many: Vec<Problem> = (1..=22).map(problem).collect();
        let many = failure(&many).unwrap();
        assert_eq!(many.message(), "the configuration has 22 mistakes");
        assert!(many.details().starts_with("  f: line 1: bad\n  f: line 2: bad\n"), "{many:?}");
        assert!(many.details().ends_with("  f: line 20: bad\n  and 2 more\n"), "{many:?}");
        assert_eq!(many.kind(), FailureKind::Usage);
    }
}
