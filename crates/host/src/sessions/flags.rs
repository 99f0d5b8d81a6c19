//! Flags of a run that its session remembers: environment, model and tools, but no keys.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pintle_governance::{Grant, Mode, RecordedPolicy};
use pintle_store::Summary;

use crate::failure::{Failure, OrFailure as _};
use crate::layers::{FIELDS, StoredSpec};
use crate::model::Model;
use crate::spec::{BaseUrl, PartialSpec, ProfileRef, SessionSpec};

/// Values by the name of their flag, without dashes. A switch has no values.
pub type RememberedFlags = BTreeMap<String, Vec<String>>;

/// Settings that a stored session remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RememberedSettings {
    /// The settings as flags. Older versions read them.
    pub flags: RememberedFlags,
    /// The settings.
    pub spec: StoredSpec,
    /// Last mode on the record, or a narrower one that the configuration of the user allows; `None` if the mode was set while
    /// the session ran, or is unknown.
    pub recorded_mode: Option<Mode>,
}

impl RememberedSettings {
    /// Reads the settings and the directory of a session.
    ///
    /// # Errors
    ///
    /// Settings that cannot be read, and flags that this version does not know: they could be a restriction.
    pub fn from_summary(summary: &Summary) -> Result<Self, Failure> {
        let flags = remembered_flags(summary)?;
        // Older versions have stored flags only.
        let Some(text) = summary.properties.get(SPEC) else { return Self::from_flags(flags) };
        let spec = StoredSpec::parse(text).or_failed(UNREADABLE)?;
        let mut settings = Self { flags, spec, recorded_mode: None };
        settings.spec.given.environment.dir =
            settings.flags.get(DIR).and_then(|dir| dir.first()).map(PathBuf::from);
        Ok(settings)
    }

    /// Reads the settings of a session, with the mode at the end of its record unless it was set while the session ran.
    ///
    /// # Errors
    ///
    /// As [`from_summary`](Self::from_summary).
    pub fn from_session(summary: &Summary, recorded: &RecordedPolicy) -> Result<Self, Failure> {
        let mut settings = Self::from_summary(summary)?;
        settings.recorded_mode = recorded.mode.filter(|_| !recorded.is_mode_chosen);
        Ok(settings)
    }

    /// Converts flags.
    ///
    /// # Errors
    ///
    /// A flag that this version does not know.
    pub fn from_flags(flags: RememberedFlags) -> Result<Self, Failure> {
        let spec = StoredSpec::from_flags(&flags, None).or_usage("cannot continue the session")?;
        Ok(Self { flags, spec, recorded_mode: None })
    }

    /// Adds the model that was chosen, unless a profile or a script names it. `has_profile` is whether the configuration names
    /// a profile.
    fn with_selected_model(
        mut self,
        provider: &str,
        model: &str,
        base_url: Option<String>,
        has_profile: bool,
    ) -> Self {
        if has_profile || self.flags.contains_key("profile") || self.flags.contains_key("script") {
            return self;
        }
        let given = &mut self.spec.given.model;
        (given.provider, given.name) = (Some(provider.to_owned()), Some(model.to_owned()));
        self.flags.insert("provider".to_owned(), vec![provider.to_owned()]);
        self.flags.insert("model".to_owned(), vec![model.to_owned()]);
        if let Some(url) = base_url {
            given.base_url = Some(BaseUrl::new(url.as_str()));
            self.flags.insert("base-url".to_owned(), vec![url]);
        }
        self
    }

    /// Records the settings of a new session, and the rules of its client also as flags. The store has the directory, and the
    /// record contains the original grant.
    ///
    /// Fails for a path that is not UTF-8.
    fn add_to_summary(mut self, summary: Summary) -> Result<Summary, Failure> {
        self.flags.remove(DIR);
        self.flags.remove("grant");
        let policy = &self.spec.given.policy;
        for (name, rules) in [("allow", &policy.allow), ("deny", &policy.deny)] {
            if !rules.is_empty() {
                self.flags.insert(name.to_owned(), rules.clone());
            }
        }
        let summary = summary.with_property(FLAGS, serde_json::to_string(&self.flags).unwrap_or_default());
        Ok(summary.with_property(SPEC, stored_text(&self.spec)?))
    }

    /// Adds hidden paths. Returns whether one of them is new.
    fn hide(&mut self, paths: &[PathBuf]) -> bool {
        let hidden = &mut self.spec.given.policy.hidden;
        let known = hidden.len();
        for path in paths {
            if !hidden.contains(path) {
                hidden.push(path.clone());
            }
        }
        hidden.len() > known
    }

    /// Removes the settings that stronger ones replace.
    #[must_use]
    pub(crate) fn without_replaced(mut self, stronger: &PartialSpec) -> Self {
        self.spec.discard_replaced(stronger);
        let given = &self.spec.given;
        self.flags.retain(|name, _| {
            let row = FIELDS.iter().find(|row| row.flags.contains(&name.as_str()));
            row.is_some_and(|row| given.is_set(row.path))
        });
        self
    }
}

/// Properties that the summary of a session records of the run that opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionDescription {
    /// Id of a new session; a generated one by default.
    pub id: Option<String>,
    /// Further properties of a new session in the store.
    pub properties: BTreeMap<String, String>,
    /// Settings of the run that the session remembers.
    pub remembered: RememberedSettings,
    /// Whether a profile names the model.
    pub has_profile: bool,
    /// Whether the run has a separate grant.
    pub has_grant: bool,
}

impl SessionDescription {
    /// Returns the description of a session with these settings.
    #[must_use]
    pub fn new(spec: &SessionSpec, mut remembered: RememberedSettings) -> Self {
        // Whatever hides them, the files of the session are compared and restored without them later.
        remembered.hide(&spec.policy.hidden);
        Self {
            id: spec.persistence.id.clone(),
            properties: spec.persistence.properties.clone().unwrap_or_default(),
            remembered,
            has_profile: matches!(spec.model.profile, Some(ProfileRef::File(_))),
            has_grant: spec.policy.grant.is_some(),
        }
    }
}

/// Property of a summary with the flags as a JSON object.
const FLAGS: &str = "flags";

/// Property of a summary with the [`StoredSpec`] as a JSON object.
const SPEC: &str = "spec";

/// Flag of the working directory.
const DIR: &str = "dir";

/// Failure to read the settings.
const UNREADABLE: &str = "the settings of the session cannot be read";

/// Property of the summary of a session that has been opened under a grant. Sessions of versions without it lack it: if the
/// record of such a session is damaged, only a grant before the damage is known.
const GRANT: &str = "grant";

/// Records in the summary that the session has a grant, which is given or recorded.
pub(super) fn add_grant(
    summary: Summary,
    description: &SessionDescription,
    recorded: Option<&Grant>,
) -> Summary {
    if !description.has_grant && recorded.is_none() {
        return summary;
    }
    summary.with_property(GRANT, "true")
}

/// Adds the hidden paths of a run to the settings of the session that it resumes.
///
/// # Errors
///
/// As [`RememberedSettings::from_summary`], and a path that is not UTF-8.
pub(super) fn add_hidden_paths(
    summary: Summary,
    description: &SessionDescription,
) -> Result<Summary, Failure> {
    let mut settings = RememberedSettings::from_summary(&summary)?;
    if !settings.hide(&description.remembered.spec.given.policy.hidden) {
        return Ok(summary);
    }
    // The store has the directory.
    settings.spec.given.environment.dir = None;
    Ok(summary.with_property(SPEC, stored_text(&settings.spec)?))
}

/// Returns the settings as the text that the store has. Fails for a path that is not UTF-8: without its settings, a session would
/// be resumed without its restrictions.
fn stored_text(spec: &StoredSpec) -> Result<String, Failure> {
    serde_json::to_string(spec).map_err(|cause| {
        let is_unwritable = |path: &&'static str| {
            let mut others = spec.given.clone();
            spec.given
                .set_paths()
                .into_iter()
                .filter(|other| other != path)
                .for_each(|other| others.clear(other));
            serde_json::to_string(&others).is_err()
        };
        let setting = spec.given.set_paths().into_iter().find(is_unwritable).unwrap_or_default();
        let problem = format!("cannot store the session: setting `{setting}`: expected paths in UTF-8");
        Failure::usage(problem).caused_by(&cause)
    })
}

/// Returns whether the summary records that the session has been opened under a grant.
pub(super) fn is_grant_recorded(summary: &Summary) -> bool {
    summary.properties.contains_key(GRANT)
}

/// Adds the flags of a new session, and the model that was chosen without them.
///
/// # Errors
///
/// A path that is not UTF-8.
pub(super) fn add_settings(
    summary: Summary,
    description: &SessionDescription,
    model: &Model,
) -> Result<Summary, Failure> {
    let route = &model.route;
    let base_url = route.base_url.as_ref().map(|url| url.redacted());
    let remembered = description.remembered.clone();
    let remembered = remembered.with_selected_model(
        route.provider.name(),
        &route.model,
        base_url,
        description.has_profile,
    );
    let summary = remembered.add_to_summary(summary)?;
    let summary = summary.with_property("provider", model.route.provider.name());
    Ok(summary.with_property("model", model.route.model.as_str()))
}

/// Returns the rules that deny and that a session remembers.
pub(crate) fn remembered_denials(summary: &Summary) -> Result<Vec<String>, Failure> {
    Ok(RememberedSettings::from_summary(summary)?.spec.given.policy.deny)
}

/// Returns the hidden paths that a session remembers.
pub(crate) fn remembered_hidden_paths(summary: &Summary) -> Result<Vec<PathBuf>, Failure> {
    Ok(RememberedSettings::from_summary(summary)?.spec.given.policy.hidden)
}

fn read_flags(summary: &Summary) -> Result<RememberedFlags, Failure> {
    let text = summary.properties.get(FLAGS).map_or("{}", String::as_str);
    serde_json::from_str(text).or_failed("the flags of the session cannot be read")
}

/// Returns the flags that a session remembers, and its directory.
fn remembered_flags(summary: &Summary) -> Result<RememberedFlags, Failure> {
    let mut flags = read_flags(summary)?;
    let location = super::SessionLocation::from_summary(summary);
    if !location.directory().is_empty() {
        flags.insert(DIR.to_owned(), vec![location.directory().to_owned()]);
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use pintle_agent::SessionId;

    use super::*;
    use crate::spec::{ProfileRef, SandboxLevel};

    fn flags(names: &[&str]) -> RememberedFlags {
        let flag = |name: &&str| match name.split_once('=') {
            Some((name, value)) => (name.to_owned(), vec![value.to_owned()]),
            None => ((*name).to_owned(), Vec::new()),
        };
        names.iter().map(flag).collect()
    }

    #[test]
    fn the_recorded_mode_is_a_setting_unless_it_was_set_while_the_session_ran() {
        let summary = Summary::new(SessionId::new("s"), super::super::now());
        for (mode, is_mode_chosen, expected) in
            [(None, false, None), (Some(Mode::Auto), false, Some(Mode::Auto)), (Some(Mode::Auto), true, None)]
        {
            let recorded = RecordedPolicy { mode, is_mode_chosen, ..RecordedPolicy::default() };
            let settings = RememberedSettings::from_session(&summary, &recorded).unwrap();
            assert_eq!(settings.recorded_mode, expected, "{recorded:?}");
        }
    }

    #[test]
    fn stronger_settings_replace_flags_of_their_group() {
        type Set = fn(&mut PartialSpec);
        let cases: [(Set, &[&str], &[&str]); 8] = [
            (
                |spec| spec.model.provider = Some("openai".to_owned()),
                &["provider=gemini", "model=m", "base-url=http://h", "profile=p", "mode=plan"],
                &["mode=plan"],
            ),
            (|spec| spec.model.profile = Some(ProfileRef::Name("p".to_owned())), &["provider=gemini"], &[]),
            (
                |spec| spec.model.name = Some("n".to_owned()),
                &["provider=gemini", "model=m"],
                &["provider=gemini"],
            ),
            (|spec| spec.environment.sandbox = Some(SandboxLevel::Full), &["no-sandbox"], &[]),
            (|spec| spec.environment.kind = Some("local".to_owned()), &["env=docker:c", "dir=/w"], &[]),
            (|spec| spec.environment.dir = Some("/v".into()), &["env=docker:c", "dir=/w"], &["env=docker:c"]),
            (|spec| spec.tools.use_servers = Some(false), &["mcp-config=/s.json"], &[]),
            (
                |spec| spec.policy.deny = vec!["web".to_owned()],
                &["deny=shell", "allow=@read"],
                &["allow=@read", "deny=shell"],
            ),
        ];
        for (set, remembered, kept) in cases {
            let mut stronger = PartialSpec::default();
            set(&mut stronger);
            let remembered = RememberedSettings::from_flags(flags(remembered)).unwrap();
            let left = remembered.without_replaced(&stronger);
            assert_eq!(left, RememberedSettings::from_flags(flags(kept)).unwrap(), "{stronger:?}");
        }
    }

    #[test]
    fn the_recorded_settings_are_preferred_to_flags() {
        let mut settings = RememberedSettings::from_flags(flags(&["mode=plan", "dir=/elsewhere"])).unwrap();
        settings.spec.given.environment.dir = None;
        settings.spec.given.policy.deny = vec!["shell".to_owned()];
        settings.spec.user = Some(PartialSpec::default());
        let settings = settings.with_selected_model("openai", "m", None, false);
        let summary =
            settings.add_to_summary(Summary::new(SessionId::new("s"), super::super::now())).unwrap();
        let recorded: RememberedFlags = serde_json::from_str(&summary.properties[FLAGS]).unwrap();
        assert_eq!(recorded, flags(&["mode=plan", "provider=openai", "model=m", "deny=shell"]));
        let summary = summary.with_property("directory", "/w").with_property("environment", "local");
        let found = RememberedSettings::from_summary(&summary).unwrap();
        assert_eq!(
            (found.spec.user.clone(), remembered_denials(&summary).unwrap()),
            (Some(PartialSpec::default()), vec!["shell".to_owned()])
        );
        let mut of_flags = RememberedSettings::from_flags(found.flags.clone()).unwrap().spec;
        assert_eq!(of_flags.given.environment.dir, Some("/w".into()));
        of_flags.user.clone_from(&found.spec.user);
        assert_eq!(found.spec, of_flags);
        let unreadable = summary.with_property(SPEC, r#"{"given": {"policy": {"forbid": ["shell"]}}}"#);
        let failure = RememberedSettings::from_summary(&unreadable).unwrap_err();
        assert!(failure.message().starts_with(UNREADABLE), "{failure:?}");
    }

    #[test]
    fn a_session_remembers_its_hidden_paths() {
        let mut spec = SessionSpec::default();
        spec.policy.hidden = vec!["keys".into(), "/srv/key".into()];
        let mut remembered = RememberedSettings::default();
        remembered.spec.given.policy.hidden = vec!["keys".into()];
        let description = SessionDescription::new(&spec, remembered);
        let summary = Summary::new(SessionId::new("s"), super::super::now());
        let summary = description.remembered.add_to_summary(summary).unwrap();
        assert_eq!(remembered_hidden_paths(&summary).unwrap(), spec.policy.hidden);
    }

    #[test]
    fn a_path_that_is_not_utf_8_is_not_forgotten() {
        use std::os::unix::ffi::OsStrExt as _;
        type Set = fn(&mut PartialSpec, PathBuf);
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(b"/keys\xff"));
        let cases: [(Set, &str); 3] = [
            (|spec, path| spec.policy.hidden = vec!["/w".into(), path], "policy.hidden"),
            (|spec, path| spec.model.script = Some(path), "model.script"),
            (|spec, path| spec.tools.server_files = vec![path], "tools.server_files"),
        ];
        for (set, setting) in cases {
            let mut remembered = RememberedSettings::default();
            remembered.spec.given.policy.deny = vec!["shell".to_owned()];
            set(&mut remembered.spec.given, path.clone());
            let summary = Summary::new(SessionId::new("s"), super::super::now());
            let failure = remembered.add_to_summary(summary).unwrap_err();
            let expected = format!("setting `{setting}`: expected paths in UTF-8");
            assert!(failure.message().contains(&expected), "{failure:?}");
        }
        let mut spec = SessionSpec::default();
        spec.policy.hidden = vec![path];
        let description = SessionDescription::new(&spec, RememberedSettings::default());
        let summary = Summary::new(SessionId::new("s"), super::super::now());
        let failure = add_hidden_paths(summary, &description).unwrap_err();
        assert!(failure.message().contains("`policy.hidden`"), "{failure:?}");
    }

    #[test]
    fn a_resumed_session_remembers_further_hidden_paths() {
        let summary = Summary::new(SessionId::new("s"), super::super::now())
            .with_property(FLAGS, r#"{"mode": ["plan"]}"#)
            .with_property("directory", "/w")
            .with_property("environment", "local");
        let mut spec = SessionSpec::default();
        spec.policy.hidden = vec!["keys".into()];
        let description = SessionDescription::new(&spec, RememberedSettings::default());
        let resumed = add_hidden_paths(summary.clone(), &description).unwrap();
        let (found, before) = (
            RememberedSettings::from_summary(&resumed).unwrap(),
            RememberedSettings::from_summary(&summary).unwrap(),
        );
        assert_eq!(found.spec.given.policy.hidden, spec.policy.hidden);
        let mut expected = before.clone();
        expected.hide(&spec.policy.hidden);
        assert_eq!((found, before.spec.given.policy.mode), (expected, Some(Mode::Plan)));
        assert_eq!(add_hidden_paths(resumed.clone(), &description).unwrap(), resumed);
    }

    #[test]
    fn a_profile_and_a_script_name_the_model() {
        for (remembered, has_profile, is_chosen) in [
            (&["mode=plan"][..], false, true),
            (&["mode=plan"], true, false),
            (&["profile=p"], false, false),
            (&["script=/s.toml"], false, false),
        ] {
            let settings = RememberedSettings::from_flags(flags(remembered)).unwrap();
            let chosen =
                settings.with_selected_model("openai", "m", Some("http://h".to_owned()), has_profile);
            let added: &[&str] =
                if is_chosen { &["provider=openai", "model=m", "base-url=http://h"] } else { &[] };
            let expected = RememberedSettings::from_flags(flags(&[remembered, added].concat())).unwrap();
            assert_eq!(chosen, expected, "{remembered:?}");
        }
    }

    #[test]
    fn the_directory_of_a_session_is_a_setting() {
        let summary = Summary::new(SessionId::new("s"), super::super::now())
            .with_property(FLAGS, r#"{"mode": ["plan"], "env": ["docker:c"]}"#);
        let summary = summary.with_property("directory", "/w").with_property("environment", "docker:c");
        let remembered = RememberedSettings::from_summary(&summary).unwrap();
        assert_eq!(remembered.flags, flags(&["mode=plan", "env=docker:c", "dir=/w"]));
        let unknown = Summary::new(SessionId::new("s"), super::super::now())
            .with_property(FLAGS, r#"{"denny": ["shell"]}"#);
        let failure = RememberedSettings::from_summary(&unknown).unwrap_err();
        assert!(failure.message().starts_with("cannot continue the session"), "{failure:?}");
    }
}
