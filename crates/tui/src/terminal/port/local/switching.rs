//! Changes of this session, rewinding, and switching to another session.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_agent::{Turn, TurnKind};
use pintle_host::failure::Failure;
use pintle_host::sanitize::sanitize;

use super::LocalPort;
use crate::render::{Face, StyledLine, diff, expand_tabs, plural};
use crate::reports::labelled;
use crate::terminal::conversation_end::{ConversationEnd, ConversationSettings};
use crate::terminal::port::{PortReply, PortResult, Switch, carried_out};
use crate::terminal::stored_session::StoredSession;

/// Maximum number of diff rows shown. The rest is in the files.
const DIFF_ROWS: usize = 400;

/// Maximum number of inputs in a list, which contains the newest.
const LISTED_INPUTS: usize = 20;

/// Maximum length of an input in a list, in characters.
const INPUT_CHARS: usize = 60;

impl LocalPort<'_> {
    pub(super) fn switch(&self, switch: Switch) -> BoxFuture<'static, PortResult> {
        match switch {
            Switch::New => carried_out(Ok(PortReply::Next(ConversationEnd::New(self.settings())))),
            Switch::Fork(entries) => carried_out(self.fork(&entries)),
            Switch::Undo => carried_out(self.undo()),
            Switch::Rewind(arguments) => self.rewind(&arguments),
            Switch::Resume(prefix) => self.resume(prefix),
        }
    }

    /// Returns the settings that a new session adopts from this one.
    fn settings(&self) -> ConversationSettings {
        ConversationSettings {
            model: self.model.clone(),
            effort: self.effort.clone(),
            mode: self.resources.policy.mode(),
        }
    }

    /// Returns the successor of a session that is kept.
    fn successor(&self, next: ConversationEnd) -> PortResult {
        self.stored()?;
        Ok(PortReply::Next(next))
    }

    /// Finds the session whose id starts with this prefix.
    fn resume(&self, prefix: String) -> BoxFuture<'static, PortResult> {
        let stored = match self.stored() {
            Ok(stored) => Arc::clone(stored),
            Err(problem) => return carried_out(Err(problem)),
        };
        Box::pin(async move {
            let id = stored.find(&prefix).await.map_err(|failure| failure.message())?;
            Ok(PortReply::Next(ConversationEnd::Resume(id.to_string())))
        })
    }

    fn fork(&self, entries: &str) -> PortResult {
        let turns = match entries {
            "" => None,
            entries => Some(entry_number(entries, &self.session.history())?),
        };
        self.successor(ConversationEnd::Fork {
            id: self.session.id().clone(),
            turns,
            settings: self.settings(),
        })
    }

    /// Rewinds to before the newest input, which becomes a draft.
    fn undo(&self) -> PortResult {
        let history = self.session.history();
        let Some((turns, draft)) = inputs(&history).pop() else {
            return Err("there is no input to take back".to_owned());
        };
        self.rewind_to(turns, draft, false)
    }

    fn rewind_to(&self, turns: usize, draft: String, forced: bool) -> PortResult {
        let (id, settings) = (self.session.id().clone(), self.settings());
        self.successor(ConversationEnd::Rewind { id, turns, forced, draft, settings })
    }

    /// Lists the inputs, previews a rewind, or carries it out.
    fn rewind(&self, arguments: &str) -> BoxFuture<'static, PortResult> {
        let history = self.session.history();
        let mut words = arguments.split_whitespace();
        let (number, order) = (words.next(), words.next());
        let inputs = inputs(&history);
        if inputs.is_empty() {
            return carried_out(Err("nothing to rewind: the conversation has no input yet".to_owned()));
        }
        carried_out(match (number, order, words.next()) {
            (None, ..) => Ok(PortReply::Lines(listed(&inputs))),
            (Some(number), order @ (None | Some("now" | "force")), None) => match chosen(number, &inputs) {
                Ok((turns, _)) if order.is_none() => return self.preview_rewind(turns),
                Ok((turns, draft)) => self.rewind_to(turns, draft, order == Some("force")),
                Err(problem) => Err(problem),
            },
            (Some(_), ..) => Err("expected /rewind N, /rewind N now or /rewind N force".to_owned()),
        })
    }

    fn preview_rewind(&self, turns: usize) -> BoxFuture<'static, PortResult> {
        self.ask_store(move |stored| async move {
            let text = stored.preview_rewind(turns).await?;
            let mut lines: Vec<StyledLine> =
                text.lines().map(|line| StyledLine::plain(sanitize(line))).collect();
            let hint = "add `now` to do that; `force` also reverts files that others changed";
            lines.push(StyledLine::new(hint, Face::DIM));
            Ok(lines)
        })
    }

    /// Shows the changes in the working directory.
    pub(super) fn changes(&self) -> BoxFuture<'static, PortResult> {
        self.ask_store(|stored| async move {
            let text = stored.diff().await?;
            if text.is_empty() {
                return Ok(vec![labelled("diff", "no changes since the session started")]);
            }
            let mut lines = diff(&text);
            let more = lines.len().saturating_sub(DIFF_ROWS);
            if more > 1 {
                lines.truncate(DIFF_ROWS);
                let more = plural(more as u64, "more line");
                lines.push(StyledLine::new(format!("… {more}; `pintle sessions diff` shows all"), Face::DIM));
            }
            Ok(lines)
        })
    }

    pub(super) fn list_sessions(&self) -> BoxFuture<'static, PortResult> {
        self.ask_store(|stored| async move {
            let found = stored.neighbours().await?;
            let mut lines: Vec<StyledLine> =
                found.iter().map(|line| StyledLine::plain(expand_tabs(line))).collect();
            lines.push(StyledLine::new("/resume ID resumes one; the start of its id is enough", Face::DIM));
            Ok(lines)
        })
    }

    /// Writes the conversation to a new file of the user, on this machine.
    pub(super) fn export(&self, name: String) -> BoxFuture<'static, PortResult> {
        let short: String = self.session.id().as_str().chars().take(18).collect();
        let name = if name.is_empty() { format!("pintle-{short}.md") } else { name };
        let process_env = self.resources.process_env.clone();
        self.ask_store(move |stored| async move {
            let text = stored.export(&name).await?;
            let path = process_env.write_new(Path::new(&name), &text)?;
            Ok(vec![labelled("export", path.display().to_string())])
        })
    }

    /// Queries the store and shows the result.
    fn ask_store<F>(&self, work: impl FnOnce(Arc<dyn StoredSession>) -> F) -> BoxFuture<'static, PortResult>
    where
        F: Future<Output = Result<Vec<StyledLine>, Failure>> + Send + 'static,
    {
        match self.stored() {
            Ok(stored) => {
                let answer = work(Arc::clone(stored));
                Box::pin(
                    async move { answer.await.map(PortReply::Lines).map_err(|failure| failure.message()) },
                )
            }
            Err(problem) => carried_out(Err(problem)),
        }
    }

    fn stored(&self) -> Result<&Arc<dyn StoredSession>, String> {
        self.resources.stored.as_ref().ok_or_else(|| "this session is not kept".to_owned())
    }
}

/// Returns the inputs of the user, each with the number of entries before it.
fn inputs(history: &[Turn]) -> Vec<(usize, String)> {
    let numbered = history.iter().enumerate();
    numbered
        .filter(|(_, turn)| turn.kind == TurnKind::User)
        .map(|(at, turn)| (at, turn.item.text()))
        .collect()
}

fn listed(inputs: &[(usize, String)]) -> Vec<StyledLine> {
    let first = inputs.len().saturating_sub(LISTED_INPUTS);
    let numbered = inputs.iter().enumerate().skip(first);
    let line = |(index, (_, text)): (usize, &(usize, String))| {
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut shown: String = line.chars().take(INPUT_CHARS).collect();
        if shown.len() < line.len() {
            shown.push('…');
        }
        StyledLine::new(format!("{:>4} ", index + 1), Face::BOLD).and(sanitize(&shown), Face::PLAIN)
    };
    let mut lines: Vec<StyledLine> = numbered.map(line).collect();
    lines.push(StyledLine::new("/rewind N shows what going back to before that input would do", Face::DIM));
    lines
}

/// Returns the input with this number in the list, with the number of entries before it.
fn chosen(number: &str, inputs: &[(usize, String)]) -> Result<(usize, String), String> {
    let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let found = index.and_then(|index| inputs.get(index));
    let count = inputs.len();
    found.cloned().ok_or_else(|| format!("expected the number of an input, 1 to {count}, found {number}"))
}

fn entry_number(text: &str, history: &[Turn]) -> Result<usize, String> {
    let most = history.len();
    let number = text.parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| format!("expected a number of entries, 0 to {most}, found {text}"))
}

#[cfg(test)]
mod tests {
    use pintle_agent::Timestamp;

    use super::*;

    #[test]
    fn inputs_are_chosen_by_their_number() {
        let at = Timestamp::default();
        let history = [Turn::user("one", at), Turn::steering("more", at), Turn::user("two\nlines", at)];
        let inputs = inputs(&history);
        assert_eq!(inputs, [(0, "one".to_owned()), (2, "two\nlines".to_owned())]);
        assert_eq!(chosen("2", &inputs), Ok((2, "two\nlines".to_owned())));
        for wrong in ["0", "3", "-1", "x", "18446744073709551616"] {
            let problem = chosen(wrong, &inputs).unwrap_err();
            assert_eq!(problem, format!("expected the number of an input, 1 to 2, found {wrong}"));
        }
        let rows: Vec<String> = listed(&inputs).iter().map(StyledLine::text).collect();
        assert_eq!(rows[..2], ["   1 one", "   2 two lines"]);
    }

    #[test]
    fn forks_have_no_more_entries_than_there_are() {
        let history = [Turn::user("one", Timestamp::default())];
        assert_eq!(entry_number("1", &history), Ok(1));
        assert_eq!(
            entry_number("2", &history),
            Err("expected a number of entries, 0 to 1, found 2".to_owned())
        );
    }
}
