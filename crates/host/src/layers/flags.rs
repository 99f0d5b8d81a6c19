//! Converts the flags that older versions stored with a session.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use pintle_agent::Toolset;

use crate::spec::{BaseUrl, PartialSpec, ProfileRef, SandboxLevel};

/// Flag of a stored session that cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the flag --{flag} of the session: {problem}")]
#[non_exhaustive]
pub struct UnreadableFlag {
    /// Name of the flag, without dashes.
    pub flag: String,
    /// The problem.
    pub problem: String,
}

impl PartialSpec {
    /// Converts the flags that an older version stored with a session, by name without dashes. A switch has no values.
    /// `directory` is the working directory of the session.
    ///
    /// # Errors
    ///
    /// [`UnreadableFlag`] for an unknown flag, which could be a restriction, and for a wrong value.
    pub fn from_remembered_flags(
        flags: &BTreeMap<String, Vec<String>>,
        directory: Option<&str>,
    ) -> Result<Self, UnreadableFlag> {
        let mut spec = Self::default();
        for (flag, values) in flags {
            let set = spec.set_flag(flag, values);
            set.map_err(|problem| UnreadableFlag { flag: flag.clone(), problem })?;
        }
        let directory = directory.filter(|directory| !directory.is_empty());
        spec.environment.dir = directory.map(PathBuf::from).or(spec.environment.dir);
        Ok(spec)
    }

    /// Sets the field of a flag. The error is the problem.
    fn set_flag(&mut self, flag: &str, values: &[String]) -> Result<(), String> {
        match flag {
            "provider" => self.model.provider = Some(one(values)?.to_owned()),
            "model" => self.model.name = Some(one(values)?.to_owned()),
            "base-url" => self.model.base_url = Some(BaseUrl::new(one(values)?).redacted()),
            "script" => self.model.script = Some(PathBuf::from(one(values)?)),
            "dialect" => self.model.dialect = Some(one(values)?.to_owned()),
            "profile" => self.model.profile = Some(profile(one(values)?)),
            "reasoning-effort" => self.model.reasoning_effort = Some(one(values)?.to_owned()),
            "catalog" => self.model.catalog = Some(PathBuf::from(one(values)?)),
            "env" => self.environment.kind = Some(one(values)?.to_owned()),
            "dir" => self.environment.dir = Some(PathBuf::from(one(values)?)),
            "sandbox" => self.environment.sandbox = Some(parsed(values)?),
            "no-sandbox" => self.environment.sandbox = Some(SandboxLevel::Off),
            "network" => self.environment.network = Some(parsed(values)?),
            "confine" => self.environment.confine = Some(true),
            "mode" => self.policy.mode = Some(parsed(values)?),
            "after-plan" => self.policy.after_plan = Some(parsed(values)?),
            "allow" => self.policy.allow = values.to_vec(),
            "deny" => self.policy.deny = values.to_vec(),
            "wait-approval" => self.policy.wait_approval = Some(true),
            "read-before-write" => self.policy.read_before_write = Some(true),
            "toolset" => self.tools.toolset = Some(toolset(one(values)?)?),
            "mcp-config" => self.tools.server_files = values.iter().map(PathBuf::from).collect(),
            "no-mcp" => self.tools.use_servers = Some(false),
            _ => return Err("unknown in this version".to_owned()),
        }
        Ok(())
    }
}

/// Returns the only value.
fn one(values: &[String]) -> Result<&str, String> {
    match values {
        [value] => Ok(value),
        _ => Err(format!("found {} values, expected one", values.len())),
    }
}

fn parsed<T>(values: &[String]) -> Result<T, String>
where
    T: FromStr,
    T::Err: ToString,
{
    one(values)?.parse::<T>().map_err(|error| error.to_string())
}

fn toolset(name: &str) -> Result<Toolset, String> {
    match name {
        "native" => Ok(Toolset::Native),
        "spec" => Ok(Toolset::Spec),
        _ => Err(format!("found `{name}`, expected native or spec")),
    }
}

/// Returns the profile of a stored flag. The paths of files are absolute there.
fn profile(value: &str) -> ProfileRef {
    let is_file = value.contains('/') || value.ends_with(".toml");
    if is_file { ProfileRef::File(PathBuf::from(value)) } else { ProfileRef::Name(value.to_owned()) }
}

#[cfg(test)]
mod tests {
    use pintle_governance::Mode;

    use super::*;
    use crate::spec::NetworkAccess;

    fn flags(flags: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
        let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        flags.iter().map(|(name, values)| ((*name).to_owned(), owned(values))).collect()
    }

    /// Every flag that a version of the command has stored with a session.
    const STORED: &[(&str, &[&str], &str)] = &[
        ("env", &["docker:c"], "environment.kind"),
        ("dir", &["/w"], "environment.dir"),
        ("provider", &["openai"], "model.provider"),
        ("model", &["m"], "model.name"),
        ("base-url", &["https://h"], "model.base_url"),
        ("script", &["/s.toml"], "model.script"),
        ("dialect", &["gemini"], "model.dialect"),
        ("profile", &["/p.toml"], "model.profile"),
        ("reasoning-effort", &["low"], "model.reasoning_effort"),
        ("catalog", &["/c.json"], "model.catalog"),
        ("toolset", &["spec"], "tools.toolset"),
        ("mode", &["plan"], "policy.mode"),
        ("after-plan", &["ask"], "policy.after_plan"),
        ("wait-approval", &[], "policy.wait_approval"),
        ("sandbox", &["full"], "environment.sandbox"),
        ("no-sandbox", &[], "environment.sandbox"),
        ("network", &["on"], "environment.network"),
        ("confine", &[], "environment.confine"),
        ("read-before-write", &[], "policy.read_before_write"),
        ("mcp-config", &["/a.json", "/b.json"], "tools.server_files"),
        ("no-mcp", &[], "tools.use_servers"),
        ("allow", &["shell(ls)"], "policy.allow"),
        ("deny", &["shell", "@write"], "policy.deny"),
    ];

    #[test]
    fn each_stored_flag_sets_its_field() {
        for (flag, values, path) in STORED {
            let spec = PartialSpec::from_remembered_flags(&flags(&[(*flag, *values)]), None).unwrap();
            assert_eq!(spec.set_paths(), [*path], "{flag}");
        }
    }

    #[test]
    fn values_are_converted() {
        let stored = flags(&[
            ("base-url", &["https://user:pass@h/v1?key=k"]),
            ("profile", &["review"]),
            ("mode", &["edit"]),
            ("no-sandbox", &[]),
            ("network", &["off"]),
            ("deny", &["shell", "@write"]),
        ]);
        let spec = PartialSpec::from_remembered_flags(&stored, Some("/work")).unwrap();
        assert_eq!(spec.model.base_url, Some(BaseUrl::new("https://h/v1")));
        assert_eq!(spec.model.profile, Some(ProfileRef::Name("review".to_owned())));
        assert_eq!((spec.policy.mode, spec.environment.sandbox), (Some(Mode::Edit), Some(SandboxLevel::Off)));
        assert_eq!(spec.environment.network, Some(NetworkAccess::Off));
        assert_eq!(spec.environment.dir, Some(PathBuf::from("/work")));
        assert_eq!(spec.policy.deny, ["shell", "@write"]);
        assert_eq!(
            PartialSpec::from_remembered_flags(&flags(&[]), Some("")).unwrap(),
            PartialSpec::default()
        );
    }

    #[test]
    fn unreadable_flags_are_reported() {
        for (flag, values, problem) in [
            ("denny", &["shell"][..], "unknown in this version"),
            ("mode", &["all"], "`all` is not a mode"),
            ("sandbox", &["none"], "found `none`, expected one of full"),
            ("model", &[], "found 0 values, expected one"),
            ("toolset", &["other"], "found `other`, expected native or spec"),
        ] {
            let error = PartialSpec::from_remembered_flags(&flags(&[(flag, values)]), None).unwrap_err();
            assert_eq!(error.flag, flag);
            assert!(error.problem.starts_with(problem), "{error}");
        }
    }
}
