//! A gate with rules by path.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::{EnvError, ExecutionEnvironment};

use super::{Gate, Permission, Verdict, write_locations};
use crate::call::PreparedCall;
use crate::tool::Effect;

/// Confines the files and directories that calls name to a set of roots.
///
/// Paths and roots are compared with all links resolved in the environment. A path that cannot be resolved counts as
/// outside, as does a call that changes files but does not name them. Commands are not judged, since they declare no
/// reliable paths. A search is judged by the directory in which it starts.
#[derive(Clone, Debug)]
pub struct PathGate {
    env: Arc<dyn ExecutionEnvironment>,
    roots: Vec<PathBuf>,
    reads: bool,
    outside: Permission,
}

impl PathGate {
    /// A gate with the environment's working directory as the only root. Calls that name anything outside are denied.
    #[must_use]
    pub fn new(env: Arc<dyn ExecutionEnvironment>) -> Self {
        let root = env.working_directory().to_owned();
        Self { env, roots: vec![root], reads: true, outside: Permission::Deny }
    }

    /// Adds a root; a relative path starts at the working directory.
    #[must_use]
    pub fn with_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.roots.push(root.into());
        self
    }

    /// Judges only writes; calls may read everything.
    #[must_use]
    pub fn writes_only(mut self) -> Self {
        self.reads = false;
        self
    }

    /// Sets the permission of paths outside of the roots.
    #[must_use]
    pub fn outside(mut self, permission: Permission) -> Self {
        self.outside = permission;
        self
    }

    /// Returns why this path is outside of all roots, if it is.
    fn objection(
        &self,
        roots: &[PathBuf],
        path: &Path,
        locations: Result<Vec<PathBuf>, EnvError>,
    ) -> Option<String> {
        let locations = match locations {
            Ok(locations) => locations,
            Err(error) => return Some(format!("{} cannot be resolved: {error}", path.display())),
        };
        let is_outside = |real: &&PathBuf| !roots.iter().any(|root| real.starts_with(root));
        let real = locations.iter().find(is_outside)?;
        let is_link = real != path;
        let (path, shown) = (path.display(), real.display());
        Some(match is_link {
            false => format!("{path} is outside of {}", self.shown_roots()),
            true => format!("{path} leads to {shown}, outside of {}", self.shown_roots()),
        })
    }

    /// Returns the resolved roots. One that cannot be resolved contains nothing.
    async fn real_roots(&self) -> Vec<PathBuf> {
        let mut roots = Vec::with_capacity(self.roots.len());
        for root in &self.roots {
            roots.extend(self.env.canonicalize(&self.env.resolve(root)).await.ok());
        }
        roots
    }

    fn shown_roots(&self) -> String {
        let roots: Vec<String> = self.roots.iter().map(|root| root.display().to_string()).collect();
        roots.join(" and ")
    }
}

#[async_trait]
impl Gate for PathGate {
    fn name(&self) -> &'static str {
        "path"
    }

    async fn check(&self, call: &PreparedCall) -> Verdict {
        if self.outside == Permission::Allow {
            return Verdict::ALLOW;
        }
        if call.effect() == Effect::Write && call.writes().is_empty() {
            return self.outside.verdict(|| {
                "the call names no file that it would change, so it cannot be judged; look whether its arguments \
                 are what the tool wants"
                    .to_owned()
            });
        }
        let (roots, env) = (self.real_roots().await, call.judged_in(&self.env));
        for path in call.writes() {
            let locations = write_locations(env.as_ref(), path).await;
            if let Some(objection) = self.objection(&roots, path, locations) {
                return self.outside.verdict(|| objection);
            }
        }
        let reads = if self.reads { call.reads() } else { &[] };
        for path in reads {
            let target = env.canonicalize(path).await.map(|target| vec![target]);
            if let Some(objection) = self.objection(&roots, path, target) {
                return self.outside.verdict(|| objection);
            }
        }
        Verdict::ALLOW
    }
}

#[cfg(test)]
mod tests {
    use pintle_env::LocalEnvironment;
    use pintle_llm::ToolCall;
    use serde_json::{Value, json};

    use super::*;
    use crate::error::ToolErrorKind;
    use crate::pipeline::{Preparation, prepare};
    use crate::registry::ToolRegistry;
    use crate::tests::probe::{call_in, probe};

    /// Creates `project` with a link to its sibling `secret`, and `data`, a link to `store`.
    #[expect(clippy::disallowed_methods, reason = "fixtures are written before the environment is used")]
    fn tree() -> (tempfile::TempDir, Arc<LocalEnvironment>) {
        let directory = tempfile::tempdir().unwrap();
        for name in ["project", "secret", "store"] {
            std::fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        std::fs::write(directory.path().join("project/file"), "").unwrap();
        for (target, link) in [("secret", "project/out"), ("secret/key", "project/key"), ("store", "data")] {
            std::os::unix::fs::symlink(directory.path().join(target), directory.path().join(link)).unwrap();
        }
        let env = LocalEnvironment::with_host_env(directory.path().join("project"), []).unwrap();
        (directory, Arc::new(env))
    }

    #[tokio::test]
    async fn paths_are_resolved_before_they_are_judged() {
        let (directory, env) = tree();
        let gate = PathGate::new(env.clone()).with_root("../data");
        let writes = |path: &str| (Effect::Write, json!({"writes": [path]}));
        let reads = |path: &str| (Effect::Read, json!({"reads": [path]}));
        let inside = [
            writes("file"),
            writes("new/deep"),
            writes("./a/../b"),
            writes("../data/x"),
            writes("../store/x"),
            reads("."),
            (Effect::Read, json!({})),
            (Effect::Execute, json!({})),
        ];
        let outside = [
            (writes("../x"), "DIR/x is outside of DIR/project and ../data"),
            (writes("out/x"), "DIR/project/out/x leads to DIR/secret/x, outside of DIR/project and ../data"),
            (writes("key"), "DIR/project/key leads to DIR/secret/key, outside of DIR/project and ../data"),
            (reads("/etc/passwd"), "/etc/passwd is outside of DIR/project and ../data"),
            (reads("../project2"), "DIR/project2 is outside of DIR/project and ../data"),
            (
                writes("file/below"),
                "DIR/project/file/below cannot be resolved: DIR/project/file/below is not a directory",
            ),
            (
                (Effect::Write, json!({"writes": ["file", "../x"]})),
                "DIR/x is outside of DIR/project and ../data",
            ),
            (
                (Effect::Write, json!({})),
                "the call names no file that it would change, so it cannot be judged; \
                 look whether its arguments are what the tool wants",
            ),
        ];
        let verdict = async |gate: &PathGate, (effect, arguments): &(Effect, Value)| {
            gate.check(&call_in(env.as_ref(), probe(*effect), arguments.clone()).await).await
        };
        for case in &inside {
            assert_eq!(verdict(&gate, case).await, Verdict::ALLOW, "{case:?}");
        }
        let real = directory.path().canonicalize().unwrap();
        for (case, expected) in &outside {
            let denial = verdict(&gate, case).await;
            assert_eq!(denial.permission(), Permission::Deny, "{case:?}");
            let reason = denial.reason();
            assert_eq!(reason.replace(real.to_str().unwrap(), "DIR"), *expected);
            let asking = gate.clone().outside(Permission::Ask);
            assert_eq!(verdict(&asking, case).await.permission(), Permission::Ask, "{case:?}");
            let open = gate.clone().outside(Permission::Allow);
            assert_eq!(verdict(&open, case).await, Verdict::ALLOW, "{case:?}");
        }
        let lax = gate.writes_only();
        assert_eq!(verdict(&lax, &reads("/etc/passwd")).await, Verdict::ALLOW);
        assert_eq!(verdict(&lax, &writes("/etc/passwd")).await.permission(), Permission::Deny);
    }

    /// An invalid patch writes nothing, and the model needs to know its mistake.
    #[tokio::test]
    async fn an_invalid_patch_is_refused_before_gates_judge_it() {
        let (_directory, env) = tree();
        let gates: [Arc<dyn Gate>; 1] = [Arc::new(PathGate::new(env.clone()))];
        let broken = "*** Begin Patch\n*** Update File: file\nno hunk\n*** End Patch";
        let outside = "*** Begin Patch\n*** Add File: ../x\n+x\n*** End Patch";
        let cases = [
            (broken, ToolErrorKind::InvalidArguments, "patch line 3"),
            (outside, ToolErrorKind::Denied, "is outside of"),
        ];
        for (patch, kind, reason) in cases {
            for native in [false, true] {
                let mut registry = ToolRegistry::new();
                let key = if native { "input" } else { "patch" };
                if native {
                    registry.register(crate::native::openai::ApplyPatch::new()).unwrap();
                } else {
                    registry.register(crate::builtin::ApplyPatch::new()).unwrap();
                }
                let call = ToolCall::from_raw("c", "apply_patch", json!({ key: patch }).to_string());
                let Preparation::Refused { error, .. } =
                    prepare(&registry, &gates, env.as_ref(), &call).await
                else {
                    panic!("{patch}");
                };
                assert_eq!(error.kind(), kind, "{}", error.for_model());
                assert!(error.for_model().contains(reason), "{}", error.for_model());
            }
        }
    }
}
