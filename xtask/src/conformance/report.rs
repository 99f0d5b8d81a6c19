//! The report of a run, for the terminal and as the page in `docs/`.

use std::{collections::BTreeMap, fmt, fmt::Write as _};

use super::{
    Verdict,
    checklist::{Checklist, Line, Proof},
};

/// The four groups of lines, by the prefix of their identifiers.
const GROUPS: &[(&str, &str)] = &[
    ("L-", "loop, checkboxes"),
    ("LP-", "loop, parity cells"),
    ("C-", "client, checkboxes"),
    ("CP-", "client, parity cells"),
];

const PAGE_HEAD: &str = "\
# Conformance

Written by `cargo xtask conformance --write` from `xtask/conformance.toml`; edit that file, not this page.

Each line is a checkbox of a definition of done: section 9 of the loop specification (`L`), section 8 of the client specification (`C`), or a cell of their parity matrices (`LP`, `CP`).
A checkbox of section 8.2 of the client specification counts once per provider: it is three lines, and is proved when all three are.
";

/// What no line of this page proves.
const PAGE_TAIL: &str = "
## Proved offline only

Section 9.13 of the loop specification and section 8.10 of the client specification ask for their integration smoke tests with the keys of each provider.
The gate runs the same steps and checks against a scripted server (`pintle-tests::it::smoke::both_smoke_tests_pass_offline_in_each_dialect`); no run with keys is on record.
`cargo xtask smoke` makes one with the keys in the environment.
";

pub(super) struct Report<'a> {
    checklist: &'a Checklist,
    verdicts: Vec<Verdict>,
}

/// The mapping of lines to tests, without running them.
pub(super) struct MappingReport<'a>(&'a Checklist);

#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    all: usize,
    proved: usize,
    failed: usize,
    pending: usize,
}

impl<'a> Report<'a> {
    pub(super) fn new(checklist: &'a Checklist, verdicts: Vec<Verdict>) -> Self {
        Self { checklist, verdicts }
    }

    pub(super) fn mapping(checklist: &'a Checklist) -> MappingReport<'a> {
        MappingReport(checklist)
    }

    /// Returns the number of failed lines.
    pub(super) fn failed(&self) -> usize {
        self.verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Failed(_))).count()
    }

    /// Renders the page: the sums, then a table per section.
    pub(super) fn page(&self) -> String {
        let mut page = String::from(PAGE_HEAD);
        page.push_str("\n| what | all | proved | failed | pending |\n|---|---|---|---|---|\n");
        for (title, sum) in self.sums() {
            page.push_str(&format!(
                "| {title} | {} | {} | {} | {} |\n",
                sum.all, sum.proved, sum.failed, sum.pending
            ));
        }
        let mut section = "";
        for (line, verdict) in self.lines() {
            if line.section != section {
                section = &line.section;
                page.push_str(&format!("\n## {section} {}\n\n", line.section_title));
                page.push_str("| line | says | state | tests |\n|---|---|---|---|\n");
            }
            let tests: Vec<String> = line.proof.tests().iter().map(|test| format!("`{test}`")).collect();
            page.push_str(&format!(
                "| {} | {} | {} | {} |\n",
                line.id,
                line.says,
                verdict.word(),
                tests.join("<br>")
            ));
        }
        page.push_str(PAGE_TAIL);
        page
    }

    fn lines(&self) -> impl Iterator<Item = (&Line, &Verdict)> {
        self.checklist.lines.iter().zip(&self.verdicts)
    }

    /// Returns the sum of each group. The lines of one checkbox count as one.
    fn sums(&self) -> Vec<(&'static str, Sum)> {
        GROUPS
            .iter()
            .map(|(prefix, title)| {
                let cells = prefix.ends_with("P-");
                let mut boxes: BTreeMap<&str, Vec<&Verdict>> = BTreeMap::new();
                for (line, verdict) in self.lines().filter(|(line, _)| line.id.starts_with(prefix)) {
                    let key = if cells { &line.id } else { &line.checkbox };
                    boxes.entry(key).or_default().push(verdict);
                }
                let mut sum = Sum::default();
                for verdicts in boxes.values() {
                    sum.add(verdicts);
                }
                (*title, sum)
            })
            .collect()
    }
}

impl Sum {
    /// Adds one checkbox. It fails if any of its lines fails, and is proved if all are.
    fn add(&mut self, verdicts: &[&Verdict]) {
        self.all += 1;
        if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Failed(_))) {
            self.failed += 1;
        } else if verdicts.iter().all(|verdict| matches!(verdict, Verdict::Proved)) {
            self.proved += 1;
        } else {
            self.pending += 1;
        }
    }
}

impl Verdict {
    fn word(&self) -> String {
        match self {
            Self::Proved => String::from("proved"),
            Self::Failed(_) => String::from("FAILED"),
            Self::Pending(issue) => format!("pending (issue {issue})"),
        }
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (line, verdict) in self.lines() {
            write_line(formatter, line, &verdict.word())?;
            match verdict {
                Verdict::Failed(failures) => {
                    for failure in failures {
                        writeln!(formatter, "    FAILED {failure}")?;
                    }
                }
                Verdict::Proved => write_tests(formatter, line, "pass ")?,
                Verdict::Pending(_) => {}
            }
        }
        formatter.write_char('\n')?;
        for (title, sum) in self.sums() {
            let Sum { all, proved, failed, pending } = sum;
            writeln!(
                formatter,
                "{title:<22} {all:>3}: {proved:>3} proved, {failed:>3} failed, {pending:>3} pending"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for MappingReport<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.0.lines {
            let state = match &line.proof {
                Proof::Tests(_) => String::from("mapped"),
                Proof::Pending(issue) => format!("pending (issue {issue})"),
            };
            write_line(formatter, line, &state)?;
            write_tests(formatter, line, "")?;
        }
        Ok(())
    }
}

fn write_line(formatter: &mut fmt::Formatter<'_>, line: &Line, state: &str) -> fmt::Result {
    writeln!(formatter, "{:<30} {state:<18} {}", line.id, line.says)
}

fn write_tests(formatter: &mut fmt::Formatter<'_>, line: &Line, state: &str) -> fmt::Result {
    for test in line.proof.tests() {
        writeln!(formatter, "    {state}{test}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Report, Sum, Verdict};
    use crate::conformance::checklist::Checklist;

    const DATA: &str = include_str!("../../conformance.toml");

    #[test]
    fn three_lines_of_one_checkbox_count_once() {
        let checklist = Checklist::parse(DATA).expect("the data parses");
        let verdicts: Vec<Verdict> = checklist
            .lines
            .iter()
            .map(|line| match line.id.as_str() {
                "C-8.2-gemini-1" | "LP-create-openai" => Verdict::Failed(vec![String::from("broke")]),
                "C-8.2-gemini-2" => Verdict::Pending(4),
                _ => Verdict::Proved,
            })
            .collect();
        let report = Report::new(&checklist, verdicts);
        let sum = |all, proved, failed, pending| Sum { all, proved, failed, pending };
        assert_eq!(
            report.sums(),
            [
                ("loop, checkboxes", sum(59, 59, 0, 0)),
                ("loop, parity cells", sum(45, 44, 1, 0)),
                ("client, checkboxes", sum(71, 69, 1, 1)),
                ("client, parity cells", sum(45, 45, 0, 0)),
            ]
        );
        assert_eq!(report.failed(), 2);
        let shown = report.to_string();
        assert!(shown.contains("    FAILED broke\n"), "{shown}");
        assert!(report.page().contains("| C-8.2-gemini-2 | "), "{}", report.page());
    }
}
