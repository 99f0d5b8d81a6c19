//! The settings that a session stores, to be merged again with the current configuration when it is resumed.

use std::collections::BTreeMap;

use pintle_governance::Mode;
use serde::{Deserialize, Serialize};

use super::flags::UnreadableFlag;
use super::merge::{combine_values, discard_replaced, discard_weaker, merge, sort_layers};
use super::row::{FieldRetention, FieldRow};
use super::{BoundedValue, Layer, LayerSpec, ValueOrigin};
use crate::spec::{Combine, PartialSpec, SessionSpec};

/// Path of the field for the mode.
const MODE: &str = "policy.mode";

/// The settings that a session was started with. They contain no key and no password.
///
/// The resolved specification is not part of it: a resumed session follows the current configuration and every
/// restriction that was added since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct StoredSpec {
    /// The settings of the command line and of the client.
    pub given: PartialSpec,
    /// Their origins, by the path of the field.
    pub origins: BTreeMap<String, ValueOrigin>,
    /// The values that the configuration of the user had, for the fields that it limits; `None` if they are unknown.
    pub user: Option<PartialSpec>,
}

impl StoredSpec {
    /// Selects the settings to store from the layers of a session that starts. The working directory is left out, because the
    /// session may work in a worktree; the store has it.
    #[must_use]
    pub fn from_layers(layers: &[LayerSpec]) -> Self {
        let mut stored = Self { user: Some(PartialSpec::default()), ..Self::default() };
        let (mut users, mut given) = (Vec::new(), Vec::new());
        for mut layer in sort_layers(layers.iter().cloned()) {
            match layer.layer {
                Layer::User | Layer::UserProfile | Layer::Variables => {
                    retain(&mut layer.spec, is_bounded);
                    stored.user.get_or_insert_default().overlay(&layer.spec);
                    users.push(layer);
                }
                Layer::Remembered { .. } => given.push(limit_to_user(layer, &users)),
                Layer::CommandLine | Layer::Request { .. } => given.push(layer),
                Layer::Default | Layer::Project { .. } | Layer::ProjectProfile { .. } => {}
            }
        }
        discard_replaced(&mut given);
        for mut layer in given {
            let is_flag = layer.layer == Layer::CommandLine;
            retain(&mut layer.spec, |path| match FieldRow::find(path).map(|row| row.retention) {
                Some(FieldRetention::Always) => true,
                // The rules of a command line apply to one run.
                Some(FieldRetention::UnlessFlag) => !is_flag,
                Some(FieldRetention::Never) | None => false,
            });
            let url = layer.spec.model.base_url.take();
            layer.spec.model.base_url = url.map(|url| url.redacted());
            for path in layer.spec.set_paths() {
                stored.origins.insert(path.to_owned(), layer.origin_of(path));
            }
            stored.given.overlay(&layer.spec);
        }
        stored
    }

    /// Parses stored settings. Fields that no session stores are left out: another process that writes to the store could have set
    /// them.
    ///
    /// # Errors
    ///
    /// Text that is not JSON, and unknown fields, which could be restrictions.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        let mut stored: Self = serde_json::from_str(text)?;
        retain(&mut stored.given, is_stored);
        if let Some(user) = &mut stored.user {
            retain(user, is_bounded);
        }
        let given = &stored.given;
        stored.origins.retain(|path, _| given.is_set(path));
        Ok(stored)
    }

    /// Converts the flags that an older version stored, by name without dashes, and the working directory of the session.
    ///
    /// # Errors
    ///
    /// [`UnreadableFlag`] for a flag that this version does not know.
    pub fn from_flags(
        flags: &BTreeMap<String, Vec<String>>,
        directory: Option<&str>,
    ) -> Result<Self, UnreadableFlag> {
        let given = PartialSpec::from_remembered_flags(flags, directory)?;
        Ok(Self { given, origins: BTreeMap::new(), user: None })
    }

    /// Unsets the settings that stronger ones replace. Lists that combine by [`Combine::Append`] stay.
    pub fn discard_replaced(&mut self, stronger: &PartialSpec) {
        let given = std::mem::take(&mut self.given);
        let mut layers = [LayerSpec::new(Layer::Remembered { user: None }, given, ValueOrigin::Default)];
        discard_weaker(&mut layers, stronger);
        let [layer] = layers;
        self.given = layer.spec;
        for (path, _) in SessionSpec::FIELDS.iter().filter(|(_, combine)| *combine != Combine::Append) {
            if stronger.is_set(path) {
                self.given.clear(path);
            }
        }
    }

    /// Returns the layer for a session that is resumed.
    #[must_use]
    pub fn into_layer(self) -> LayerSpec {
        let Self { given, origins, user } = self;
        let layer = Layer::Remembered { user: user.map(Box::new) };
        let origins = origins.into_iter().map(|(path, origin)| {
            // A fork has remembered values already.
            let is_remembered = matches!(origin, ValueOrigin::Remembered(_));
            (path, if is_remembered { origin } else { ValueOrigin::Remembered(Some(Box::new(origin))) })
        });
        let origins = origins.collect();
        LayerSpec { layer, spec: given, origin: ValueOrigin::Remembered(None), origins }
    }
}

/// Returns the mode of the user's configuration in place of the mode on the record of a stored session, which exceeds it;
/// `None` if the recorded mode applies. A mode that exceeds the configuration applies until the configuration allows less than
/// when the session was started. Flags of the process and requests do not count.
#[must_use]
pub fn limit_recorded_mode(layers: &[LayerSpec], recorded: Mode) -> Option<(Mode, BoundedValue)> {
    let layers = layers.iter().filter_map(|layer| match layer.layer {
        Layer::User | Layer::UserProfile | Layer::Variables => Some(layer.clone()),
        Layer::Remembered { .. } => {
            let mut spec = PartialSpec::default();
            spec.policy.mode = Some(recorded);
            Some(LayerSpec::new(layer.layer.clone(), spec, ValueOrigin::Remembered(None)))
        }
        Layer::Default
        | Layer::Project { .. }
        | Layer::ProjectProfile { .. }
        | Layer::CommandLine
        | Layer::Request { .. } => None,
    });
    // Only the values of clients have problems.
    let resolved = merge(layers).ok()?;
    let bounded = resolved.bounded.into_iter().find(|bounded| bounded.path == MODE)?;
    Some((resolved.spec.policy.mode, bounded))
}

/// Returns the settings of a stored session within the current limits of the user, which a fork of it starts with.
fn limit_to_user(mut remembered: LayerSpec, users: &[LayerSpec]) -> LayerSpec {
    let layers: Vec<LayerSpec> = users.iter().chain([&remembered]).cloned().collect();
    let mut limited = combine_values(&layers);
    retain(&mut limited, |path| is_bounded(path) && remembered.spec.is_set(path));
    remembered.spec.overlay(&limited);
    remembered
}

/// Returns whether sessions store a field.
fn is_stored(path: &str) -> bool {
    FieldRow::find(path).is_some_and(|row| row.retention != FieldRetention::Never)
}

/// Returns whether the user's value of a field limits the values of other layers.
fn is_bounded(path: &str) -> bool {
    SessionSpec::FIELDS.iter().any(|(name, combine)| *name == path && *combine == Combine::Bounded)
}

fn retain(spec: &mut PartialSpec, keep: impl Fn(&str) -> bool) {
    for path in spec.set_paths() {
        if !keep(path) {
            spec.clear(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(kind: Layer, mode: Option<Mode>) -> LayerSpec {
        let mut spec = PartialSpec::default();
        spec.policy.mode = mode;
        let origin = ValueOrigin::Flag(format!("{kind:?}"));
        LayerSpec::new(kind, spec, origin)
    }

    #[test]
    fn a_recorded_mode_is_limited_by_a_configuration_that_allows_less_than_at_the_start() {
        use Mode::{Ask, Auto, Edit, Plan};
        // Mode of the user at the start, if the session stored it, and now.
        for (then, now, recorded, expected) in [
            (Some(None), None, Auto, None),
            (Some(None), Some(Auto), Auto, None),
            (Some(None), Some(Ask), Auto, Some(Ask)),
            (Some(None), Some(Edit), Ask, None),
            (Some(Some(Auto)), Some(Edit), Auto, Some(Edit)),
            (Some(Some(Edit)), Some(Plan), Ask, Some(Plan)),
            // The session was started with a mode that exceeded the configuration.
            (Some(Some(Ask)), Some(Ask), Auto, None),
            (Some(Some(Ask)), Some(Edit), Auto, None),
            (Some(Some(Ask)), None, Auto, None),
            // A session of an older version.
            (None, None, Auto, None),
            (None, Some(Ask), Auto, Some(Ask)),
            (None, Some(Ask), Plan, None),
        ] {
            let user = then.map(|mode| Box::new(layer(Layer::User, mode).spec));
            let remembered = layer(Layer::Remembered { user }, Some(Auto));
            for kind in [Layer::User, Layer::UserProfile, Layer::Variables] {
                let flag = layer(Layer::CommandLine, Some(Plan));
                let layers = [layer(kind.clone(), now), remembered.clone(), flag];
                let found = limit_recorded_mode(&layers, recorded);
                let mode = found.as_ref().map(|(mode, _)| *mode);
                assert_eq!(mode, expected, "{then:?} {now:?} {recorded} {kind:?}");
                let notice = found.map(|(_, bounded)| bounded.to_string());
                let text = format!("kept session: `mode` allows more than {kind:?}, which applies instead");
                assert_eq!(notice, expected.map(|_| text));
            }
        }
        assert_eq!(limit_recorded_mode(&[layer(Layer::User, Some(Ask))], Auto), None);
    }
}
