//! By path.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::ExecutionEnvironment;

use super::{Gate, Ruling, Verdict};
use crate::pipeline::PreparedCall;
use crate::tool::Effect;

/// Rules by the files and directories that a call names: inside of the roots it may run, outside it may not.
///
/// Paths are resolved in the environment before they are judged, links followed, and so are the roots. A path that
/// cannot be resolved counts as outside, and so does a call that changes files and does not say which. Commands are
/// not judged, since they name no paths that can be relied upon, and a search is judged by where it begins.
#[derive(Clone, Debug)]
pub struct PathGate {
    env: Arc<dyn ExecutionEnvironment>,
    roots: Vec<PathBuf>,
    reads: bool,
    outside: Ruling,
}

impl PathGate {
    /// A gate for calls in this environment, with its working directory as the only root. Calls that name anything
    /// outside are denied.
    #[must_use]
    pub fn new(env: Arc<dyn ExecutionEnvironment>) -> Self {
        let root = env.working_directory().to_owned();
        Self { env, roots: vec![root], reads: true, outside: Ruling::Deny }
    }

    /// With one more root; a relative one begins at the working directory.
    #[must_use]
    pub fn with_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.roots.push(root.into());
        self
    }

    /// Judges only what calls change; they may look at everything.
    #[must_use]
    pub fn writes_only(mut self) -> Self {
        self.reads = false;
        self
    }

    /// With another ruling on what is outside.
    #[must_use]
    pub fn outside(mut self, ruling: Ruling) -> Self {
        self.outside = ruling;
        self
    }

    /// Why this path is outside of all roots, if it is.
    async fn objection(&self, roots: &[PathBuf], path: &Path) -> Option<String> {
        match self.env.canonicalize(path).await {
            Ok(real) if roots.iter().any(|root| real.starts_with(root)) => None,
            Ok(real) if real == path => {
                Some(format!("{} is outside of {}", path.display(), self.shown_roots()))
            }
            Ok(real) => Some(format!(
                "{} leads to {}, outside of {}",
                path.display(),
                real.display(),
                self.shown_roots()
            )),
            Err(error) => Some(format!("{} cannot be resolved: {error}", path.display())),
        }
    }

    /// The roots as they are called now; one that cannot be resolved holds nothing.
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
    async fn check(&self, call: &PreparedCall) -> Verdict {
        if self.outside == Ruling::Allow {
            return Verdict::Allow;
        }
        if call.effect() == Effect::Write && call.writes().is_empty() {
            return self.outside.verdict(|| {
                "the call names no file that it would change, so it cannot be judged; look whether its arguments \
                 are what the tool wants"
                    .to_owned()
            });
        }
        let roots = self.real_roots().await;
        let reads = if self.reads { call.reads() } else { &[] };
        for path in call.writes().iter().chain(reads) {
            if let Some(objection) = self.objection(&roots, path).await {
                return self.outside.verdict(|| objection);
            }
        }
        Verdict::Allow
    }
}

#[cfg(test)]
mod tests {
    use pintle_env::LocalEnvironment;
    use pintle_llm::ToolCall;
    use serde_json::{Value, json};

    use super::*;
    use crate::error::ToolErrorKind;
    use crate::gate::workbench::{call_in, doing};
    use crate::pipeline::{Preparation, prepare};
    use crate::registry::ToolRegistry;

    /// `project` with a link to its sister `secret`, and `data`, which is a link to `store`.
    #[expect(clippy::disallowed_methods, reason = "fixtures stand there before the environment is used")]
    fn tree() -> (tempfile::TempDir, Arc<LocalEnvironment>) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["project", "secret", "store"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("project/file"), "").unwrap();
        for (target, link) in [("secret", "project/out"), ("secret/key", "project/key"), ("store", "data")] {
            std::os::unix::fs::symlink(folder.path().join(target), folder.path().join(link)).unwrap();
        }
        let env = LocalEnvironment::with_host_env(folder.path().join("project"), []).unwrap();
        (folder, Arc::new(env))
    }

    #[tokio::test]
    async fn paths_are_resolved_before_they_are_judged() {
        let (folder, env) = tree();
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
            gate.check(&call_in(env.as_ref(), doing(*effect), arguments.clone()).await).await
        };
        for row in &inside {
            assert_eq!(verdict(&gate, row).await, Verdict::Allow, "{row:?}");
        }
        let real = folder.path().canonicalize().unwrap();
        for (row, expected) in &outside {
            let Verdict::Deny { reason } = verdict(&gate, row).await else { panic!("{row:?}") };
            assert_eq!(reason.replace(real.to_str().unwrap(), "DIR"), *expected);
            let asking = gate.clone().outside(Ruling::Ask);
            assert!(matches!(verdict(&asking, row).await, Verdict::Ask { .. }), "{row:?}");
            let open = gate.clone().outside(Ruling::Allow);
            assert_eq!(verdict(&open, row).await, Verdict::Allow, "{row:?}");
        }
        let lax = gate.writes_only();
        assert_eq!(verdict(&lax, &reads("/etc/passwd")).await, Verdict::Allow);
        assert!(matches!(verdict(&lax, &writes("/etc/passwd")).await, Verdict::Deny { .. }));
    }

    /// Nothing is written by it, and what the model needs to know is what is wrong with it.
    #[tokio::test]
    async fn a_patch_that_does_not_parse_is_told_its_mistake_before_any_gate_judges_it() {
        let (_folder, env) = tree();
        let gates: [Arc<dyn Gate>; 1] = [Arc::new(PathGate::new(env.clone()))];
        let broken = "*** Begin Patch\n*** Update File: file\nno hunk\n*** End Patch";
        let outside = "*** Begin Patch\n*** Add File: ../x\n+x\n*** End Patch";
        let rows = [
            (broken, ToolErrorKind::InvalidArguments, "patch line 3"),
            (outside, ToolErrorKind::Denied, "is outside of"),
        ];
        for (patch, kind, reason) in rows {
            for native in [false, true] {
                let mut registry = ToolRegistry::new();
                let key = if native { "input" } else { "patch" };
                if native {
                    registry.register(crate::native::openai::ApplyPatch::new()).unwrap();
                } else {
                    registry.register(crate::builtin::ApplyPatch::new()).unwrap();
                }
                let call = ToolCall::from_raw("c", "apply_patch", json!({ key: patch }).to_string());
                let Preparation::Refused(error) = prepare(&registry, &gates, env.as_ref(), &call).await
                else {
                    panic!("{patch}");
                };
                assert_eq!(error.kind(), kind, "{}", error.for_model());
                assert!(error.for_model().contains(reason), "{}", error.for_model());
            }
        }
    }
}
