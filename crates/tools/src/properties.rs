//! Macros for tools whose properties are constants.

/// Implements methods of [`Tool`](crate::Tool) that return a constant. It belongs in the `impl` of the trait.
///
/// ```text
/// tool_properties! {
///     name: "Write",
///     description: include_str!("write.md"),
///     effect: Effect::Write,
///     repeatable: true,
/// }
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! tool_properties {
    ($($property:ident: $value:expr),+ $(,)?) => {
        $($crate::tool_properties!(@$property $value);)+
    };
    (@name $value:expr) => {
        fn name(&self) -> &str {
            $value
        }
    };
    (@description $value:expr) => {
        fn description(&self) -> &str {
            $value.trim_end()
        }
    };
    (@effect $value:expr) => {
        fn effect(&self) -> $crate::Effect {
            $value
        }
    };
    (@repeatable $value:expr) => {
        fn repeatable(&self) -> bool {
            $value
        }
    };
    (@declares_changes $value:expr) => {
        fn declares_changes(&self) -> bool {
            $value
        }
    };
    (@kind $value:expr) => {
        fn kind(&self) -> &str {
            $value
        }
    };
    (@truncation $value:expr) => {
        fn truncation(&self) -> $crate::TruncationRule {
            $value
        }
    };
    (@waits $value:expr) => {
        fn waits(&self) -> bool {
            $value
        }
    };
    (@supports_dry_run $value:expr) => {
        fn supports_dry_run(&self) -> bool {
            $value
        }
    };
}

/// Declares a tool without settings, with its constructor.
macro_rules! stateless_tool {
    ($(#[$doc:meta])* pub struct $Tool:ident;) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $Tool(());

        impl $Tool {
            /// Creates the tool.
            #[must_use]
            pub fn new() -> Self {
                Self::default()
            }
        }
    };
}

/// Declares a tool that needs a client of the embedding application, with its constructor.
macro_rules! client_tool {
    ($(#[$doc:meta])* pub struct $Tool:ident($Client:ty);) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $Tool {
            client: $Client,
        }

        impl $Tool {
            /// Creates the tool with this client.
            #[must_use]
            pub fn new(client: $Client) -> Self {
                Self { client }
            }
        }
    };
}

pub(crate) use client_tool;
pub(crate) use stateless_tool;
pub(crate) use tool_properties;
