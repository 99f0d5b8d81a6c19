//! Directories in which the sessions of a server may work.

use std::path::{Path, PathBuf};

use pintle_host::environment::server_paths;
use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use rustix::fs::statfs;

use crate::host::HostError;

/// Magic numbers of pseudo file systems, whose entries show or change the state of the kernel (statfs(2)).
const PSEUDO_FILE_SYSTEMS: [u64; 11] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x1cd1,      // devpts
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0x1980_0202, // mqueue
    0xcafe_4a11, // bpf
];

/// Device files, which are on a file system of the usual kind.
const DEVICES: &str = "/dev";

/// Directory in which sessions of a server may work, with the directories below it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkspaceRoot {
    /// Tenant whose sessions may work there. `None` for clients without a tenant and tenants without a root.
    pub tenant: Option<String>,
    /// The directory.
    pub directory: PathBuf,
}

impl WorkspaceRoot {
    /// Creates a root for clients without a tenant and tenants without a root.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { tenant: None, directory: directory.into() }
    }

    /// Creates a root for a tenant. It replaces the roots without a tenant.
    #[must_use]
    pub fn for_tenant(tenant: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        Self { tenant: Some(tenant.into()), directory: directory.into() }
    }
}

/// Roots of workspaces, by tenant. Those without a tenant apply to tenants that have no root.
#[derive(Clone, Debug)]
pub(super) struct WorkspaceRoots(Vec<WorkspaceRoot>);

impl WorkspaceRoots {
    /// Resolves the roots that are given, or else the `default`, which is the current directory if it is `None`.
    pub(super) fn new(
        given: &[WorkspaceRoot],
        default: Option<&Path>,
        process_env: &ProcessEnv,
    ) -> Result<Self, Failure> {
        let own = match given {
            [] => vec![WorkspaceRoot::new(process_env.directory(default)?)],
            [..] => Vec::new(),
        };
        let resolved = given.iter().chain(&own).map(|root| {
            let directory = process_env.real_path(&std::path::absolute(&root.directory).unwrap_or_default());
            if !process_env.is_directory(&directory) {
                let shown = root.directory.display();
                let problem = format!("root {shown}: expected an existing directory");
                return Err(Failure::usage(problem).with_setting("environment.roots"));
            }
            Ok(WorkspaceRoot { tenant: root.tenant.clone(), directory })
        });
        resolved.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the directory of a session with all links resolved.
    ///
    /// Returns [`HostError::Forbidden`] for a directory that is in no root of the tenant,
    /// [`HostError::Unprocessable`] for one of a pseudo file system, and [`HostError::Invalid`] for one that does not
    /// exist.
    pub(super) fn resolve(
        &self,
        tenant: Option<&str>,
        directory: &Path,
        process_env: &ProcessEnv,
    ) -> Result<PathBuf, HostError> {
        let shown = directory.display();
        let invalid = || {
            let problem =
                format!("directory: expected an absolute path to an existing directory, not `{shown}`");
            HostError::Invalid(problem)
        };
        if !directory.is_absolute() {
            return Err(invalid());
        }
        let real = process_env.real_path(directory);
        let is_pseudo = statfs(&real).is_ok_and(|found| PSEUDO_FILE_SYSTEMS.contains(&magic_number(&found)));
        if is_pseudo || real.starts_with(DEVICES) {
            let problem = format!("directory: `{shown}` is in a pseudo file system, which has no workspaces");
            return Err(HostError::Unprocessable(problem));
        }
        let is_of_server =
            server_paths(process_env).any(|path| real.starts_with(process_env.real_path(&path)));
        let is_in_root = self.is_in_root(tenant, &real);
        if is_in_root && is_of_server {
            let problem = format!(
                "directory: `{shown}` is in a directory of the server itself, where no session works"
            );
            return Err(HostError::Forbidden(problem));
        }
        if is_in_root {
            // Checked last, so that clients cannot probe for directories outside the roots.
            return if process_env.is_directory(&real) { Ok(real) } else { Err(invalid()) };
        }
        Err(HostError::Forbidden(format!("directory: `{shown}` is outside the allowed roots")))
    }

    /// Returns the roots of other tenants that a session in a resolved `workspace` must not read. Roots that contain the
    /// workspace or are inside a root of its tenant are not included.
    pub(super) fn foreign_roots(&self, tenant: Option<&str>, workspace: &Path) -> Vec<PathBuf> {
        let others = self.0.iter().filter(|root| root.tenant.is_some() && root.tenant.as_deref() != tenant);
        let others = others.map(|root| &root.directory);
        others
            .filter(|root| !workspace.starts_with(root) && !self.is_in_root(tenant, root))
            .cloned()
            .collect()
    }

    /// Returns whether a resolved directory is in a root of the tenant.
    fn is_in_root(&self, tenant: Option<&str>, directory: &Path) -> bool {
        let has_own = self.0.iter().any(|root| root.tenant.is_some() && root.tenant.as_deref() == tenant);
        let owner = tenant.filter(|_| has_own);
        let mut roots = self.0.iter().filter(|root| root.tenant.as_deref() == owner);
        roots.any(|root| directory.starts_with(&root.directory))
    }
}

/// Returns the number that identifies the type of a file system.
#[expect(clippy::cast_sign_loss, reason = "a bit pattern")]
fn magic_number(found: &rustix::fs::StatFs) -> u64 {
    (found.f_type as u64) & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_judged_by_where_they_lead() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let process_env = ProcessEnv::from_variables([("HOME", base.as_os_str())]);
        let process_env = process_env.with_server_files([base.join("shared/tokens")]);
        let of_server = [".config/pintle/below", ".local/state/pintle/below", "shared/tokens"];
        for name in ["shared/project", "ann/project", "elsewhere"].into_iter().chain(of_server) {
            process_env.create_directory(&base.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(base.join("elsewhere"), base.join("shared/link")).unwrap();
        let root = |tenant: Option<&str>, name: &str| WorkspaceRoot {
            tenant: tenant.map(str::to_owned),
            directory: base.join(name),
        };
        let roots = [root(None, "shared"), root(Some("ann"), "ann")];
        let roots = WorkspaceRoots::new(&roots, None, &process_env).unwrap();
        let at = |name: &str| base.join(name).display().to_string();
        for (tenant, path, expected) in [
            (None, at("shared"), "ok"),
            (None, at("shared/project"), "ok"),
            (Some("bob"), at("shared/project"), "ok"),
            (None, at("ann/project"), "forbidden"),
            (Some("ann"), at("ann/project"), "ok"),
            (Some("ann"), at("shared/project"), "forbidden"),
            (None, at("shared/link"), "forbidden"),
            (None, at("shared/project/../../elsewhere"), "forbidden"),
            (None, at("shared/missing"), "invalid"),
            (None, at("missing"), "forbidden"),
            (None, "relative".to_owned(), "invalid"),
            (None, "/proc/self".to_owned(), "unprocessable"),
            (None, "/sys".to_owned(), "unprocessable"),
            (None, "/dev/shm".to_owned(), "unprocessable"),
        ] {
            let judged = match roots.resolve(tenant, Path::new(&path), &process_env) {
                Ok(real) => {
                    assert_eq!(real, Path::new(&path).canonicalize().unwrap());
                    "ok"
                }
                Err(HostError::Forbidden(_)) => "forbidden",
                Err(HostError::Unprocessable(_)) => "unprocessable",
                Err(_) => "invalid",
            };
            assert_eq!(judged, expected, "{tenant:?} {path}");
        }
        let everywhere = WorkspaceRoots::new(&[root(None, "")], None, &process_env).unwrap();
        for name in of_server {
            let judged = everywhere.resolve(None, &base.join(name), &process_env);
            assert!(matches!(judged, Err(HostError::Forbidden(_))), "{name}: {judged:?}");
        }
        assert!(WorkspaceRoots::new(&[root(None, "missing")], None, &process_env).is_err());
    }

    #[test]
    fn roots_of_other_tenants_are_foreign() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let process_env = ProcessEnv::from_variables([("HOME", base.as_os_str())]);
        for name in ["ann", "bob/below", "shared/cid"] {
            process_env.create_directory(&base.join(name)).unwrap();
        }
        let root = |tenant: Option<&str>, name: &str| WorkspaceRoot {
            tenant: tenant.map(str::to_owned),
            directory: base.join(name),
        };
        let roots = [
            root(None, "shared"),
            root(Some("ann"), "ann"),
            root(Some("bob"), "bob"),
            root(Some("cid"), "shared/cid"),
            root(Some("dan"), "bob/below"),
        ];
        let roots = WorkspaceRoots::new(&roots, None, &process_env).unwrap();
        for (tenant, workspace, expected) in [
            (Some("ann"), "ann", &["bob", "shared/cid", "bob/below"][..]),
            // Directories in the tenant's own root are not foreign.
            (Some("bob"), "bob", &["ann", "shared/cid"]),
            (None, "shared", &["ann", "bob", "bob/below"]),
            (Some("eve"), "shared", &["ann", "bob", "bob/below"]),
            // A root that contains the workspace cannot be hidden.
            (Some("dan"), "bob/below", &["ann", "shared/cid"]),
        ] {
            let expected: Vec<PathBuf> = expected.iter().map(|name| base.join(name)).collect();
            assert_eq!(
                roots.foreign_roots(tenant, &base.join(workspace)),
                expected,
                "{tenant:?} {workspace}"
            );
        }
    }
}
