//! Steps of the guide's workflow: a reader of the plain YAML that the file consists of.

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/github-action/pintle.yml");

/// Step of a job.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) job: String,
    pub(super) name: String,
    /// Variables with their values, which may be expressions.
    pub(super) env: Vec<(String, String)>,
    /// Empty if the step uses an action.
    pub(super) script: String,
}

impl Step {
    /// Returns the value of a variable.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

pub(super) fn text() -> String {
    std::fs::read_to_string(FILE).unwrap()
}

/// Returns all steps, in order.
pub(super) fn steps() -> Vec<Step> {
    let text = text();
    let mut lines = text.lines().skip_while(|line| *line != "jobs:").skip(1).peekable();
    let (mut job, mut steps) = (String::new(), Vec::<Step>::new());
    while let Some(line) = lines.next() {
        let (indentation, content) = (line.len() - line.trim_start().len(), line.trim());
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        match (indentation, content) {
            (2, _) => job = content.trim_end_matches(':').to_owned(),
            (6, _) if content.starts_with("- ") => {
                let name = content.strip_prefix("- name: ").expect("a step begins with its name");
                steps.push(Step { job: job.clone(), name: name.to_owned(), ..Step::default() });
            }
            (8, "env:") => {
                let step = steps.last_mut().unwrap();
                while let Some(line) = lines.next_if(|line| line.starts_with("          ")) {
                    let (name, value) = line.trim().split_once(": ").expect("a variable has a value");
                    step.env.push((name.to_owned(), value.trim_matches('"').to_owned()));
                }
            }
            (8, "run: |") => {
                let step = steps.last_mut().unwrap();
                while let Some(line) = lines.next_if(|line| line.is_empty() || line.starts_with("          "))
                {
                    step.script.push_str(line.get(10..).unwrap_or_default());
                    step.script.push('\n');
                }
            }
            (8, other) => assert!(!other.starts_with("run:"), "scripts are blocks: {other}"),
            _ => {}
        }
    }
    steps
}
