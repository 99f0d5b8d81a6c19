//! Settings of a session that a client can see and change, as plain data.

use pintle_env::setters;

/// Modes, options, commands and title of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSettings {
    /// Modes, if the session has any.
    pub modes: Option<SessionModes>,
    /// Options, in display order.
    pub options: Vec<ConfigOption>,
    /// Slash commands.
    pub commands: Vec<SlashCommand>,
    /// Title in lists of sessions, if there is one yet.
    pub title: Option<String>,
}

impl SessionSettings {
    setters! {
        /// Sets the modes.
        pub fn with_modes(modes: SessionModes) => modes = Some(modes);
        /// Sets the options.
        pub fn with_options(options: impl IntoIterator<Item = ConfigOption>) => options = options.into_iter().collect();
        /// Sets the slash commands.
        pub fn with_commands(commands: impl IntoIterator<Item = SlashCommand>) => commands = commands.into_iter().collect();
        /// Sets the title.
        pub fn with_title(title: Option<String>) => title = title;
    }
}

/// Modes of a session and the current mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionModes {
    /// Id of the current mode.
    pub current: String,
    /// All modes, the current one included.
    pub available: Vec<NamedChoice>,
}

/// Item that can be selected: a mode, a value of an option or an authentication method.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedChoice {
    /// Id by which the client selects it.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Description for the user.
    pub description: Option<String>,
}

impl NamedChoice {
    /// Creates a choice without a description.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), description: None }
    }

    setters! {
        /// Sets the description.
        pub fn with_description(description: impl Into<String>) => description = Some(description.into());
    }
}

/// Option of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigOption {
    /// Id by which the client sets it.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Description for the user.
    pub description: Option<String>,
    /// Category, by which a client can arrange options.
    pub category: OptionCategory,
    /// Values, and the current one.
    pub kind: OptionKind,
}

impl ConfigOption {
    /// Creates an option without a description.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        category: OptionCategory,
        kind: OptionKind,
    ) -> Self {
        Self { id: id.into(), name: name.into(), description: None, category, kind }
    }

    setters! {
        /// Sets the description.
        pub fn with_description(description: impl Into<String>) => description = Some(description.into());
    }
}

/// Category of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionCategory {
    /// The mode of the session.
    Mode,
    /// The model.
    Model,
    /// A parameter of the model.
    ModelSetting,
    /// The reasoning effort.
    Reasoning,
    /// Any other option.
    Other,
}

/// Values of an option, and the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionKind {
    /// One of several choices.
    Select {
        /// Id of the current choice.
        current: String,
        /// All choices.
        choices: Vec<NamedChoice>,
    },
    /// On or off. Omitted for clients that do not support switches.
    Switch(bool),
}

/// Value that a client sets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionValue {
    /// Id of a choice.
    Choice(String),
    /// State of a switch.
    Switch(bool),
}

/// Slash command: a prompt that begins with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlashCommand {
    /// Name without the slash.
    pub name: String,
    /// Description for the user.
    pub description: String,
    /// Hint for the input after the name; `None` if the command takes no input.
    pub input: Option<String>,
}

impl SlashCommand {
    /// Creates a command without input.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), input: None }
    }

    setters! {
        /// Sets the hint for the input.
        pub fn with_input(hint: impl Into<String>) => input = Some(hint.into());
    }
}
