//! How the user chooses that a conversation uses the terminal.

/// Use of the terminal by a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresentationChoice {
    /// Whether to converse in lines without escape sequences.
    pub plain: bool,
    /// How to notify a user who has not typed for a while.
    pub notify: NotifyChoice,
    /// Whether to show directory and state in the title of the window.
    pub title: TitleChoice,
    /// Background that colours are chosen for.
    pub theme: ThemeChoice,
}

/// Background of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThemeChoice {
    /// The background that the terminal reports. Without a report, colours suit most backgrounds.
    #[default]
    Auto,
    /// Light background.
    Light,
    /// Dark background.
    Dark,
}

/// Notification when a turn ends or a call waits for approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotifyChoice {
    /// No notification.
    #[default]
    None,
    /// Bell of the terminal.
    Bell,
    /// Notification of the desktop (OSC 9), in terminals that have it.
    Osc9,
}

/// Use of the title of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TitleChoice {
    /// Unless in a multiplexer or on a console.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}
