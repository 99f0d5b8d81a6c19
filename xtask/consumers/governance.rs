//! A grant for a subagent, and a rule about its commands.

use std::path::Path;

use pintle_governance::{EffectCeiling, Grant, GrantId, Pattern, Rules};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut grant = Grant::none(GrantId::new("session"));
    grant.tools = [Pattern::any()].into();
    grant.delegation.depth = 1;
    grant.delegation.width = 1;
    let mut child = grant.clone();
    child.id = GrantId::new("subagent");
    child.delegation.depth = 0;
    child.effect = EffectCeiling::Execute;
    assert!(grant.attenuate(child).is_err());
    assert_eq!(Rules::parse("rules.toml", "deny = [\"shell(git push *)\"]", Path::new("/project"))?.len(), 1);
    Ok(())
}
