//! Commands about background activity and settings.

use crate::config;
use crate::render::{Face, Line, expand_tabs, sanitize};
use crate::reports::labelled;
use crate::terminal::driver::{Done, Driver};
use crate::terminal::keys::Background;

impl Driver<'_> {
    pub(super) fn agents(&self) -> Vec<Line> {
        let agents = self.session.subagents();
        let line = |agent: &pintle_agent::SubagentHandle| {
            let state = if agent.is_closed() { "closed".to_owned() } else { agent.status().to_string() };
            labelled(&sanitize(agent.id()), state)
        };
        let lines: Vec<Line> = agents.iter().map(line).collect();
        if lines.is_empty() { vec![labelled("agents", "none was started")] } else { lines }
    }

    pub(super) fn jobs(&self) -> Vec<Line> {
        let jobs = self.session.background_commands();
        let line = |job: &pintle_tools::builtin::BackgroundStatus| {
            let command: String = sanitize(&job.command).split_whitespace().collect::<Vec<_>>().join(" ");
            let state = format!("{command} ({}, {} s)", job.state, job.age.as_secs());
            labelled(&job.id.to_string(), state)
        };
        let lines: Vec<Line> = jobs.iter().map(line).collect();
        if lines.is_empty() {
            vec![labelled("jobs", "no command was started in the background")]
        } else {
            lines
        }
    }

    /// Shows the configuration for new sessions.
    pub(super) fn config(&mut self) {
        let process_env = self.surroundings.process_env;
        self.doing.push(Box::pin(async move {
            let shown = config::effective(process_env).await.map_err(|failure| failure.message());
            Done::Called(shown.map(|text| {
                let mut lines: Vec<Line> = text.lines().map(|line| Line::plain(expand_tabs(line))).collect();
                let hint = "`pintle config edit` changes it, for sessions to come";
                lines.push(Line::new(hint, Face::DIM));
                lines
            }))
        }));
    }

    pub(super) fn theme(&mut self, theme: &str) -> Result<Vec<Line>, String> {
        let background = match theme {
            "light" => Background::Light,
            "dark" => Background::Dark,
            _ => return Err("expected light or dark".to_owned()),
        };
        self.display.set_background(background);
        Ok(vec![labelled("theme", theme)])
    }
}
