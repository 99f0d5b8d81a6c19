//! Mistakes in the configuration.

use std::fmt;

use crate::failure::{Failure, FailureKind};
use crate::notice::Notice;

/// Most mistakes that are listed.
const MAX_LISTED: usize = 20;

/// Mistake in a file, or in an environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// File with line and column, or variable. Empty if the message names the file.
    pub origin: String,
    /// The value found, and the one expected.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.origin.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.origin, self.message)
    }
}

/// Returns the mistakes as notices if `are_ignored` is set.
///
/// Otherwise, any mistakes are a usage failure that contains all of them.
pub fn check(problems: &[Problem], are_ignored: bool) -> Result<Vec<Notice>, Failure> {
    if are_ignored {
        let ignored = problems.iter().take(MAX_LISTED);
        return Ok(ignored.map(|problem| Notice::from(format!("ignored: {problem}"))).collect());
    }
    failure(problems).map_or(Ok(Vec::new()), |failure| {
        Err(failure.with_hint("`--ignore-config-errors` runs with the rest of the configuration"))
    })
}

/// Returns a usage failure with all mistakes; `None` without any.
pub fn failure(problems: &[Problem]) -> Option<Failure> {
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

    fn problem(number: usize) -> Problem {
        Problem { origin: format!("f: line {number}"), message: "bad".to_owned() }
    }

    #[test]
    fn ignored_problems_are_notices_and_others_a_failure() {
        let problems: Vec<Problem> = (1..=MAX_LISTED + 1).map(problem).collect();
        let notices = check(&problems, true).unwrap();
        assert_eq!(notices.len(), MAX_LISTED);
        assert_eq!(notices[0].text(), "ignored: f: line 1: bad");
        assert_eq!(notices[1].text(), "ignored: f: line 2: bad");
        assert!(check(&[], false).unwrap().is_empty());
        assert_eq!(check(&problems, false).unwrap_err().kind(), FailureKind::Usage);
    }

    #[test]
    fn one_problem_is_the_message_and_more_are_listed() {
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
