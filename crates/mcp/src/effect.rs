//! The effect of a server's tool.

use pintle_tools::Effect;
use rmcp::model::ToolAnnotations;

/// Returns the effect of a tool: the effect that the user declared, or a greater effect if the server's hints require it.
/// Without a declaration it is [`Effect::Execute`], the greatest: a call may change anything and reach any host.
pub(crate) fn tool_effect(declared: Effect, hints: Option<&ToolAnnotations>) -> Effect {
    let Some(hints) = hints else { return declared };
    let changes = hints.read_only_hint == Some(false) || hints.destructive_hint == Some(true);
    let destroys = hints.destructive_hint == Some(true);
    let reaches_out = hints.open_world_hint == Some(true);
    match declared {
        // A tool that names no files would pass gates that judge files.
        Effect::Read if changes => Effect::Execute,
        Effect::Read if reaches_out => Effect::Network,
        Effect::Write if destroys || reaches_out => Effect::Execute,
        Effect::Network if changes => Effect::Execute,
        Effect::Read | Effect::Write | Effect::Network | Effect::Execute => declared,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_raise_an_effect_and_never_lower_it() {
        let hints = ToolAnnotations::new;
        for (declared, hint, expected) in [
            (Effect::Execute, hints().read_only(true).destructive(false).open_world(false), Effect::Execute),
            (Effect::Read, hints(), Effect::Read),
            (Effect::Read, hints().read_only(true), Effect::Read),
            (Effect::Read, hints().read_only(false), Effect::Execute),
            (Effect::Read, hints().destructive(true), Effect::Execute),
            (Effect::Read, hints().open_world(true), Effect::Network),
            (Effect::Write, hints().read_only(true), Effect::Write),
            (Effect::Write, hints().read_only(false), Effect::Write),
            (Effect::Write, hints().open_world(true), Effect::Execute),
            (Effect::Network, hints().read_only(true).open_world(true), Effect::Network),
            (Effect::Network, hints().read_only(false), Effect::Execute),
        ] {
            assert_eq!(tool_effect(declared, Some(&hint)), expected, "{declared:?} {hint:?}");
        }
        assert_eq!(tool_effect(Effect::Network, None), Effect::Network);
    }
}
