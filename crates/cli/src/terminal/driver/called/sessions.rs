//! Commands about this session and others: changes, rewinding, and switching to another session.

use std::path::Path;

use pintle_agent::{SessionState, Turn, TurnKind};

use crate::args::ExportFormat;
use crate::failure::Failure;
use crate::render::{Face, Line, diff, expand_tabs, plural, sanitize};
use crate::reports::labelled;
use crate::session_commands::conversed::Conversed;
use crate::terminal::driver::{Done, Driver};
use crate::terminal::next::{Next, Settings};

/// Maximum number of diff rows shown. The rest is in the files.
const DIFF_ROWS: usize = 400;

/// Maximum number of inputs in a list, which contains the newest.
const LISTED_INPUTS: usize = 20;

/// Maximum length of an input in a list, in characters.
const INPUT_CHARS: usize = 60;

/// Maximum size of a text that is copied to the clipboard, in bytes. Terminals ignore much longer texts.
const MAX_COPIED: usize = 64 << 10;

type Lines = Result<Vec<Line>, String>;

impl Driver<'_> {
    /// Returns the settings that a new session adopts from this one.
    pub(super) fn settings(&self) -> Settings {
        let status = &self.display.conversation.status;
        Settings {
            model: status.model.clone(),
            effort: status.effort.clone(),
            mode: self.surroundings.policy.mode(),
        }
    }

    /// Switches to another session, unless a turn is running.
    pub(in crate::terminal::driver) fn turn_to(&mut self, next: Next) -> Lines {
        if self.session.state() == SessionState::Processing {
            return Err("a turn is running: interrupt it first, with Esc".to_owned());
        }
        if !matches!(next, Next::New(_)) {
            self.kept()?;
        }
        self.next = Some(next);
        Ok(Vec::new())
    }

    /// Switches to a session whose id starts with this prefix, if there is one.
    pub(super) fn resume(&mut self, prefix: &str) {
        let prefix = prefix.to_owned();
        match self.kept().cloned() {
            Ok(kept) => {
                self.is_finding = true;
                self.doing.push(Box::pin(async move {
                    let found = kept.find(&prefix).await;
                    let next = found.map(|id| Next::Resume(id.to_string()));
                    Done::Found(next.map_err(|failure| failure.message()))
                }));
            }
            Err(problem) => self.done(Done::Called(Err(problem))),
        }
    }

    pub(super) fn fork(&mut self, entries: &str) -> Lines {
        let turns = match entries {
            "" => None,
            entries => Some(entry_number(entries, &self.session.history())?),
        };
        let (id, settings) = (self.session.id().clone(), self.settings());
        self.turn_to(Next::Fork { id, turns, settings })
    }

    /// Rewinds to before the newest input, which becomes a draft.
    pub(super) fn undo(&mut self) -> Lines {
        let history = self.session.history();
        let Some((turns, draft)) = inputs(&history).pop() else {
            return Err("there is no input to take back".to_owned());
        };
        let (id, settings) = (self.session.id().clone(), self.settings());
        self.turn_to(Next::Rewind { id, turns, forced: false, draft, settings })
    }

    /// Lists the inputs, previews a rewind, or carries it out.
    pub(super) fn rewind(&mut self, arguments: &str) {
        let history = self.session.history();
        let mut words = arguments.split_whitespace();
        let (number, order) = (words.next(), words.next());
        let inputs = inputs(&history);
        let result = match (number, order, words.next()) {
            (None, ..) => Ok(listed(&inputs)),
            (Some(number), order @ (None | Some("now" | "force")), None) => match chosen(number, &inputs) {
                Ok((turns, _)) if order.is_none() => return self.preview_rewind(turns),
                Ok((turns, draft)) => {
                    let (id, forced) = (self.session.id().clone(), order == Some("force"));
                    self.turn_to(Next::Rewind { id, turns, forced, draft, settings: self.settings() })
                }
                Err(problem) => Err(problem),
            },
            (Some(_), ..) => Err("expected /rewind N, and now or force behind it to do it".to_owned()),
        };
        self.done(Done::Called(result));
    }

    fn preview_rewind(&mut self, turns: usize) {
        self.ask_store(move |kept| async move {
            let text = kept.preview_rewind(turns).await?;
            let mut lines: Vec<Line> = text.lines().map(|line| Line::plain(sanitize(line))).collect();
            let hint = "the same with `now` behind it does that; with `force`, also to what others changed";
            lines.push(Line::new(hint, Face::DIM));
            Ok(lines)
        });
    }

    pub(super) fn diff(&mut self) {
        self.ask_store(|kept| async move {
            let text = kept.diff().await?;
            if text.is_empty() {
                return Ok(vec![labelled("diff", "no changes since the session started")]);
            }
            let mut lines = diff(&text);
            let more = lines.len().saturating_sub(DIFF_ROWS);
            if more > 1 {
                lines.truncate(DIFF_ROWS);
                let more = plural(more as u64, "more line");
                lines.push(Line::new(format!("… {more}; `pintle sessions diff` shows all"), Face::DIM));
            }
            Ok(lines)
        });
    }

    pub(super) fn list_sessions(&mut self) {
        self.ask_store(|kept| async move {
            let found = kept.neighbours().await?;
            let mut lines: Vec<Line> = found.iter().map(|line| Line::plain(expand_tabs(line))).collect();
            lines.push(Line::new("/resume ID resumes one; the start of its id is enough", Face::DIM));
            Ok(lines)
        });
    }

    /// Writes the conversation to a new file of the user, on this machine.
    pub(super) fn export(&mut self, name: &str) {
        let short: String = self.session.id().as_str().chars().take(18).collect();
        let name = if name.is_empty() { format!("pintle-{short}.md") } else { name.to_owned() };
        let format = match Path::new(&name).extension().and_then(|extension| extension.to_str()) {
            Some("md" | "markdown") => ExportFormat::Markdown,
            Some("html" | "htm") => ExportFormat::Html,
            Some("jsonl") => ExportFormat::Jsonl,
            _ => {
                let problem = format!("expected a name that ends in .md, .html or .jsonl, found {name}");
                return self.done(Done::Called(Err(problem)));
            }
        };
        let process_env = self.surroundings.process_env.clone();
        self.ask_store(move |kept| async move {
            let text = kept.export(format).await?;
            let path = process_env.write_new(Path::new(&name), &text)?;
            Ok(vec![labelled("export", path.display().to_string())])
        });
    }

    /// Copies the newest response to the clipboard, through the terminal.
    pub(super) fn copy(&mut self) {
        let history = self.session.history();
        let responses = history.iter().rev().filter(|turn| turn.kind == TurnKind::Assistant);
        let newest = responses.map(|turn| turn.item.text()).find(|text| !text.trim().is_empty());
        let result = match newest {
            _ if self.display.conversation.is_plain() => {
                Err("a conversation in lines cannot copy".to_owned())
            }
            Some(text) if text.len() > MAX_COPIED => Err(format!(
                "the last response has {}, and terminals take no more than {MAX_COPIED}: /export writes it to a file",
                plural(text.len() as u64, "byte")
            )),
            Some(text) => {
                self.display.copy(text);
                Ok(vec![labelled("copy", "the last response was sent to the clipboard")])
            }
            None => Err("there is no response to copy".to_owned()),
        };
        self.done(Done::Called(result));
    }

    /// Queries the store and shows the result.
    fn ask_store<F>(&mut self, work: impl FnOnce(Conversed) -> F)
    where
        F: Future<Output = Result<Vec<Line>, Failure>> + Send + 'static,
    {
        match self.kept() {
            Ok(kept) => {
                let answer = work(kept.clone());
                self.doing.push(Box::pin(async move {
                    Done::Called(answer.await.map_err(|failure| failure.message()))
                }));
            }
            Err(problem) => self.done(Done::Called(Err(problem))),
        }
    }

    fn kept(&self) -> Result<&Conversed, String> {
        self.surroundings.conversed.as_ref().ok_or_else(|| "this session is not kept".to_owned())
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

fn listed(inputs: &[(usize, String)]) -> Vec<Line> {
    let first = inputs.len().saturating_sub(LISTED_INPUTS);
    let numbered = inputs.iter().enumerate().skip(first);
    let line = |(index, (_, text)): (usize, &(usize, String))| {
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut shown: String = line.chars().take(INPUT_CHARS).collect();
        if shown.len() < line.len() {
            shown.push('…');
        }
        Line::new(format!("{:>4} ", index + 1), Face::BOLD).and(sanitize(&shown), Face::PLAIN)
    };
    let mut lines: Vec<Line> = numbered.map(line).collect();
    lines.push(Line::new("/rewind N shows what going back to before that input would do", Face::DIM));
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
        let rows: Vec<String> = listed(&inputs).iter().map(Line::text).collect();
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
