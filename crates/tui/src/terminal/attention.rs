//! Output besides the text: window title, notifications for an absent user, and the query for the background.

use std::time::Duration;

use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::sanitize;

use super::presentation::{NotifyChoice, PresentationChoice, TitleChoice};

/// Time without a key press after which the user is notified.
const QUIET_TIME: Duration = Duration::from_secs(5);

/// Maximum length of a title or a notification, in characters.
const MAX_CHARS: usize = 80;

/// Values of `TERM` of multiplexers and consoles, which show no title or show it as text.
const WITHOUT_TITLE: [&str; 4] = ["screen", "tmux", "linux", "dumb"];

/// Activity of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionActivity {
    /// Whether a turn is running.
    pub(crate) is_running: bool,
    /// Number of calls that wait for approval.
    pub(crate) waiting: usize,
}

/// Writer of titles and notifications.
#[derive(Debug)]
pub(super) struct Attention {
    notify: NotifyChoice,
    /// Name of the directory, if a title is shown.
    title: Option<String>,
    /// Title of the window, if Pintle has set it.
    shown: Option<String>,
    /// Time of the newest key press.
    typed_at: Duration,
    activity: SessionActivity,
    /// Whether to query the background of the terminal.
    asks: bool,
}

/// Queries the background colour of the terminal. The answer arrives as input.
const ASK_BACKGROUND: &str = "\x1b]11;?\x1b\\";

/// Checks that the choices are compatible.
pub(super) fn check(presentation: PresentationChoice) -> Result<(), Failure> {
    let flag = match presentation {
        PresentationChoice { plain: true, notify: NotifyChoice::Osc9, .. } => "--notify osc9",
        PresentationChoice { plain: true, title: TitleChoice::On, .. } => "--title on",
        _ => return Ok(()),
    };
    Err(Failure::usage(format!("{flag} writes an escape sequence, and --plain writes none")))
}

/// Returns whether the title of the window is shown.
pub(super) fn has_title(presentation: PresentationChoice, process_env: &ProcessEnv) -> bool {
    match presentation.title {
        _ if presentation.plain => false,
        TitleChoice::On => true,
        TitleChoice::Off => false,
        TitleChoice::Auto => is_window(process_env),
    }
}

/// Returns whether the background of the terminal can be queried.
pub(super) fn can_ask(presentation: PresentationChoice, process_env: &ProcessEnv) -> bool {
    !presentation.plain && is_window(process_env)
}

/// Returns whether the terminal is a window, as opposed to a multiplexer or a console.
fn is_window(process_env: &ProcessEnv) -> bool {
    let is_set = |name| process_env.variable(name).is_some_and(|value| !value.is_empty());
    let term = process_env.variable("TERM").unwrap_or_default();
    shows_titles(&term) && !is_set("TMUX") && !is_set("STY")
}

fn shows_titles(term: &str) -> bool {
    !term.is_empty() && !WITHOUT_TITLE.iter().any(|name| term.starts_with(name))
}

impl Attention {
    /// Creates a writer. It shows a title if `title` contains the name of the directory.
    pub(super) fn new(notify: NotifyChoice, title: Option<&str>) -> Self {
        Self {
            notify,
            title: title.map(one_line),
            shown: None,
            typed_at: Duration::ZERO,
            activity: SessionActivity::default(),
            asks: false,
        }
    }

    /// Sets whether to query the background of the terminal at the start.
    pub(super) fn asking_background(mut self, asks: bool) -> Self {
        self.asks = asks;
        self
    }

    /// Returns the output for the start: a query that the terminal answers.
    pub(super) fn question(&self) -> &'static str {
        if self.asks { ASK_BACKGROUND } else { "" }
    }

    /// Records a key press of the user.
    pub(super) fn typed(&mut self, now: Duration) {
        self.typed_at = now;
    }

    /// Forgets the title, because another program had the terminal.
    pub(super) fn forget(&mut self) {
        self.shown = None;
    }

    /// Returns the output for the current activity of the session.
    pub(super) fn update(&mut self, activity: SessionActivity, now: Duration) -> String {
        let before = std::mem::replace(&mut self.activity, activity);
        let state = match activity {
            SessionActivity { waiting: 1.., .. } => "waits for approval",
            SessionActivity { is_running: true, .. } => "works",
            SessionActivity { .. } => "ready",
        };
        let mut out = String::new();
        if let Some(directory) = &self.title {
            let title = format!("{directory}: {state}");
            if self.shown.as_ref() != Some(&title) {
                out.push_str(&format!("\x1b]2;{title}\x07"));
                self.shown = Some(title);
            }
        }
        let has_news = activity.waiting > before.waiting || before.is_running && !activity.is_running;
        if has_news && now.saturating_sub(self.typed_at) >= QUIET_TIME {
            out.push_str(&match self.notify {
                NotifyChoice::None => String::new(),
                NotifyChoice::Bell => "\x07".to_owned(),
                // Terminals interpret some texts that start with a number as commands.
                NotifyChoice::Osc9 => format!("\x1b]9;pintle: {state}\x07"),
            });
        }
        out
    }
}

/// Returns a text that cannot end the escape sequence and that fits a title.
fn one_line(text: &str) -> String {
    let line: String = sanitize(text).split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|character| !character.is_control()).take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: SessionActivity = SessionActivity { is_running: false, waiting: 0 };
    const WORKS: SessionActivity = SessionActivity { is_running: true, waiting: 0 };
    const WAITS: SessionActivity = SessionActivity { is_running: true, waiting: 1 };

    /// Returns the outputs for states at these seconds.
    fn outputs(mut attention: Attention, states: &[(u64, SessionActivity)]) -> Vec<String> {
        let update =
            |(at, activity): &(u64, SessionActivity)| attention.update(*activity, Duration::from_secs(*at));
        states.iter().map(update).collect()
    }

    #[test]
    fn the_user_is_notified_of_what_waits_and_ends() {
        let states = [(1, READY), (1, WORKS), (9, WORKS), (20, WAITS), (21, WAITS), (22, WORKS), (30, READY)];
        let cases = [
            (NotifyChoice::None, "", ""),
            (NotifyChoice::Bell, "\x07", "\x07"),
            (NotifyChoice::Osc9, "\x1b]9;pintle: waits for approval\x07", "\x1b]9;pintle: ready\x07"),
        ];
        for (notify, waits, ends) in cases {
            let shown = outputs(Attention::new(notify, None), &states);
            assert_eq!(shown, ["", "", "", waits, "", "", ends], "{notify:?}");
        }
    }

    #[test]
    fn a_user_who_types_is_not_notified() {
        let mut attention = Attention::new(NotifyChoice::Bell, None);
        attention.update(WORKS, Duration::from_secs(10));
        attention.typed(Duration::from_secs(20));
        assert_eq!(attention.update(READY, Duration::from_secs(24)), "");
        attention.update(WORKS, Duration::from_secs(24));
        assert_eq!(attention.update(READY, Duration::from_secs(25)), "\x07");
    }

    #[test]
    fn the_title_is_written_when_it_changes() {
        let states = [(0, READY), (1, READY), (2, WORKS), (3, WAITS), (4, WAITS), (5, READY)];
        let shown =
            outputs(Attention::new(NotifyChoice::None, Some("a\x1b]2;b\x07\u{9b}\n\u{202e}c")), &states);
        let title = |state: &str| format!("\x1b]2;a]2;b c: {state}\x07");
        let expected = [
            title("ready"),
            String::new(),
            title("works"),
            title("waits for approval"),
            String::new(),
            title("ready"),
        ];
        assert_eq!(shown, expected);
        let mut attention = Attention::new(NotifyChoice::None, Some("a"));
        attention.update(READY, Duration::ZERO);
        attention.forget();
        assert_eq!(attention.update(READY, Duration::ZERO), "\x1b]2;a: ready\x07");
        assert!(one_line(&"x".repeat(1_000)).len() == MAX_CHARS);
    }

    #[test]
    fn multiplexers_and_consoles_get_no_title() {
        let cases = [
            ("xterm-256color", true),
            ("alacritty", true),
            ("screen-256color", false),
            ("tmux", false),
            ("linux", false),
            ("dumb", false),
            ("", false),
        ];
        for (term, expected) in cases {
            assert_eq!(shows_titles(term), expected, "{term}");
        }
    }
}
