//! Flags of a run that its session remembers: environment, model and tools, but no keys.

use std::collections::BTreeMap;

use pintle_store::Summary;
use serde_json::Value;

use crate::failure::{Failure, OrFailure as _};
use crate::model::Model;

/// Values by the name of their flag, without dashes. A switch has no values.
pub type Flags = BTreeMap<String, Vec<String>>;

/// Properties that the summary of a session records of the run that opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionDescription {
    /// Id of a new session; a generated one by default.
    pub id: Option<String>,
    /// Further properties of a new session in the store.
    pub properties: BTreeMap<String, String>,
    /// Flags of the run that the session remembers.
    pub flags: Flags,
    /// Rules that a client of a server has set for the session, by flag.
    pub rules: Flags,
    /// Whether a profile names the model.
    pub has_profile: bool,
    /// Whether the run has a separate grant.
    pub has_grant: bool,
}

/// Property of a summary with the flags as a JSON object.
const FLAGS: &str = "flags";

/// Property of the summary of a session that has been opened under a grant. Sessions of versions without it lack it: if the
/// record of such a session is damaged, only a grant before the damage is known.
const GRANT: &str = "grant";

/// Records in the summary that the session has a grant, which is given or recorded.
pub(super) fn describe_grant(
    summary: Summary,
    description: &SessionDescription,
    recorded: Option<&Value>,
) -> Summary {
    if !description.has_grant && recorded.is_none() {
        return summary;
    }
    summary.with_property(GRANT, "true")
}

/// Returns whether the summary records that the session has been opened under a grant.
pub(super) fn had_grant(summary: &Summary) -> bool {
    summary.properties.contains_key(GRANT)
}

/// Adds the flags of a new session, and the model that was chosen without them.
pub(super) fn describe(summary: Summary, description: &SessionDescription, model: &Model) -> Summary {
    let mut flags = description.flags.clone();
    flags.remove("dir");
    // The record contains the original grant.
    flags.remove("grant");
    flags.extend(description.rules.clone());
    // The configuration may name the file of a profile.
    let has_profile = flags.contains_key("profile") || description.has_profile;
    if !has_profile && !flags.contains_key("script") {
        let route = &model.route;
        let chosen = [
            ("provider", Some(route.provider.name().to_owned())),
            ("model", Some(route.model.clone())),
            ("base-url", route.base_url.as_ref().map(|url| url.redacted())),
        ];
        for (name, value) in chosen {
            if let Some(value) = value {
                flags.insert(name.to_owned(), vec![value]);
            }
        }
    }
    let text = serde_json::to_string(&flags).unwrap_or_default();
    summary
        .with_property(FLAGS, text)
        .with_property("provider", model.route.provider.name())
        .with_property("model", model.route.model.as_str())
}

/// Returns the rules that deny and that a session remembers.
pub fn denials(summary: &Summary) -> Result<Vec<String>, Failure> {
    Ok(of_summary(summary)?.remove("deny").unwrap_or_default())
}

fn of_summary(summary: &Summary) -> Result<Flags, Failure> {
    let text = summary.properties.get(FLAGS).map_or("{}", String::as_str);
    serde_json::from_str(text).or_failed("the flags of the session cannot be read")
}

/// Returns the flags that a session remembers, and its directory.
pub fn remembered_flags(summary: &Summary) -> Result<Flags, Failure> {
    let mut flags = of_summary(summary)?;
    let place = super::Place::of_summary(summary);
    if !place.directory().is_empty() {
        flags.insert("dir".to_owned(), vec![place.directory().to_owned()]);
    }
    Ok(flags)
}
