//! Flags of a conversation in the terminal.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Args, ValueEnum};
use pintle_host::failure::Failure;
use pintle_tui::terminal::{NotifyChoice, PresentationChoice, ThemeChoice, TitleChoice};

/// Flags of `pintle chat` that `pintle run` refuses.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ConversationArgs {
    /// Print plain lines without escape sequences, for screen readers and simple terminals (conversations)
    #[arg(long)]
    pub(crate) plain: bool,
    /// Notify when a turn ends or a call waits for approval, if you have not typed for 5 seconds (conversations)
    #[arg(long, value_enum, value_name = "HOW", default_value = "none")]
    pub(crate) notify: NotifyName,
    /// Show the directory and the state in the window title (conversations)
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) title: TitleName,
    /// Background of the terminal, for which colours are chosen (conversations)
    #[arg(long, value_enum, value_name = "THEME", default_value = "auto")]
    pub(crate) theme: ThemeName,
}

/// Values of `--theme`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThemeName {
    /// Background that the terminal reports; without a report, colours that are legible on most backgrounds
    #[default]
    Auto,
    /// Light background
    Light,
    /// Dark background
    Dark,
}

/// Values of `--notify`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum NotifyName {
    /// No notification
    #[default]
    None,
    /// Terminal bell
    Bell,
    /// Desktop notification (OSC 9), in terminals that support it
    Osc9,
}

/// Values of `--title`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TitleName {
    /// Except in a multiplexer or on a console
    #[default]
    Auto,
    /// Always
    On,
    /// Never
    Off,
}

impl ConversationArgs {
    /// Returns the flags with the values of the configuration for those that are not in `typed`.
    pub(crate) fn with_configuration(
        mut self,
        values: &BTreeMap<&'static str, String>,
        typed: &BTreeSet<String>,
    ) -> Self {
        for (key, text) in values.iter().filter(|(key, _)| !typed.contains(**key)) {
            self.set(key, text);
        }
        self
    }

    /// Sets the flag of a key of the configuration to its value. The keys of other flags have no effect.
    fn set(&mut self, key: &str, text: &str) {
        match key {
            "plain" => self.plain = text == "true",
            "notify" => self.notify = NotifyName::from_str(text, false).unwrap_or_default(),
            "title" => self.title = TitleName::from_str(text, false).unwrap_or_default(),
            "theme" => self.theme = ThemeName::from_str(text, false).unwrap_or_default(),
            _ => {}
        }
    }

    /// Checks that no flag is given without a conversation.
    pub(crate) fn refuse(&self) -> Result<(), Failure> {
        let flags = [
            ("--plain", self.plain),
            ("--notify", self.notify != NotifyName::None),
            ("--title", self.title != TitleName::Auto),
            ("--theme", self.theme != ThemeName::Auto),
        ];
        let given = flags.into_iter().find(|(_, is_given)| *is_given);
        given.map_or(Ok(()), |(flag, _)| {
            Err(Failure::usage(format!("{flag} is for conversations"))
                .with_hint("use `pintle chat`, or leave it out"))
        })
    }
}

impl From<&ConversationArgs> for PresentationChoice {
    fn from(args: &ConversationArgs) -> Self {
        let notify = match args.notify {
            NotifyName::None => NotifyChoice::None,
            NotifyName::Bell => NotifyChoice::Bell,
            NotifyName::Osc9 => NotifyChoice::Osc9,
        };
        let title = match args.title {
            TitleName::Auto => TitleChoice::Auto,
            TitleName::On => TitleChoice::On,
            TitleName::Off => TitleChoice::Off,
        };
        let theme = match args.theme {
            ThemeName::Auto => ThemeChoice::Auto,
            ThemeName::Light => ThemeChoice::Light,
            ThemeName::Dark => ThemeChoice::Dark,
        };
        Self { plain: args.plain, notify, title, theme }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_set_their_flags() {
        let values =
            [("plain", "true"), ("notify", "osc9"), ("title", "off"), ("theme", "dark"), ("mode", "plan")];
        let values = BTreeMap::from(values.map(|(key, text)| (key, text.to_owned())));
        let typed = ConversationArgs { theme: ThemeName::Light, ..ConversationArgs::default() };
        let typed = typed.with_configuration(&values, &BTreeSet::from(["theme".to_owned()]));
        assert_eq!((typed.notify, typed.theme), (NotifyName::Osc9, ThemeName::Light));
        let args = ConversationArgs::default().with_configuration(&values, &BTreeSet::new());
        assert!(args.plain);
        assert_eq!(
            (args.notify, args.title, args.theme),
            (NotifyName::Osc9, TitleName::Off, ThemeName::Dark)
        );
        let presentation = PresentationChoice {
            plain: true,
            notify: NotifyChoice::Osc9,
            title: TitleChoice::Off,
            theme: ThemeChoice::Dark,
        };
        assert_eq!(PresentationChoice::from(&args), presentation);
        assert_eq!(PresentationChoice::from(&ConversationArgs::default()), PresentationChoice::default());
    }
}
