//! A macro for setters in the style of a builder.

/// Declares setters that take `self`, set one field and return `self`. Belongs into an `impl`.
///
/// ```text
/// setters! {
///     /// Sets the directory to search.
///     pub fn with_path(path: impl Into<PathBuf>) => path = Some(path.into());
/// }
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($($(#[$doc:meta])* pub fn $setter:ident($argument:ident: $type:ty) => $($field:ident).+ = $value:expr;)+) => {
        $(
            $(#[$doc])*
            #[must_use = "a setter returns the changed value"]
            pub fn $setter(mut self, $argument: $type) -> Self {
                self.$($field).+ = $value;
                self
            }
        )+
    };
}

pub(crate) use setters;
