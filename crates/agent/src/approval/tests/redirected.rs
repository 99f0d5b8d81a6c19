//! Links that are exchanged between the decision on a call and its start.

#![expect(clippy::disallowed_methods, reason = "another process changes the links")]

use std::path::PathBuf;

use pintle_env::LocalEnvironment;
use pintle_tools::gate::Judgement;
use tempfile::TempDir;

use super::endings::waiting;
use super::*;
use crate::hooks::{CallAnswer, HookSession, Hooks};

const REFUSAL: &str =
    "now leads to another location than when the call was decided on; repeat the call for a new decision";

/// A project with a directory `inside` and a link `here` to it, and a directory beside the project.
struct Workspace {
    directory: TempDir,
}

/// The link `here` of a workspace, which can be made to lead out of the project.
#[derive(Clone, Debug)]
struct Link {
    path: PathBuf,
    is_redirected: bool,
}

impl Workspace {
    fn new() -> Self {
        let workspace = Self { directory: tempfile::tempdir().unwrap() };
        for name in ["project/inside", "outside"] {
            std::fs::create_dir_all(workspace.at(name)).unwrap();
        }
        std::os::unix::fs::symlink("inside", workspace.at("project/here")).unwrap();
        workspace
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn link(&self, is_redirected: bool) -> Link {
        Link { path: self.at("project/here"), is_redirected }
    }

    fn builder(&self, by_default: bool) -> SessionBuilder {
        let call = calls(&[("write_file", json!({"file_path": "here/x", "content": "1"}))]);
        let adapter = FakeAdapter::new("anthropic").message(call).answer("done");
        let client = Client::builder().provider(adapter).build().unwrap();
        let env = LocalEnvironment::with_host_env(self.at("project"), []).unwrap();
        Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), Arc::new(env))
            .gate(AskOnWrite { by_default })
            .record(true)
    }
}

impl Link {
    fn exchange(&self) {
        if self.is_redirected {
            std::fs::remove_file(&self.path).unwrap();
            std::os::unix::fs::symlink("../outside", &self.path).unwrap();
        }
    }
}

/// A gate that asks about writes, as a rule does or as a mode does.
#[derive(Debug)]
struct AskOnWrite {
    by_default: bool,
}

#[async_trait]
impl Gate for AskOnWrite {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        match (call.effect(), self.by_default) {
            (Effect::Write, true) => Verdict::ask("it writes").by_default(),
            (Effect::Write, false) => Verdict::ask("it writes"),
            (Effect::Read | Effect::Execute | Effect::Network, _) => Verdict::ALLOW,
        }
    }
}

/// Decides after the link was exchanged.
#[derive(Debug)]
struct SlowApprover {
    link: Link,
    decision: Decision,
}

#[async_trait]
impl Approver for SlowApprover {
    async fn decide(&self, _request: &ApprovalRequest) -> Decision {
        self.link.exchange();
        self.decision.clone()
    }
}

/// Answers a call, or a request for approval, after the link was exchanged.
#[derive(Debug)]
struct SlowHooks {
    link: Link,
    call: CallAnswer,
    approval: Option<Decision>,
}

#[async_trait]
impl Hooks for SlowHooks {
    async fn before_call(&self, _: &HookSession, _: &PreparedCall, _: &Judgement) -> CallAnswer {
        if self.approval.is_none() {
            self.link.exchange();
        }
        self.call.clone()
    }

    async fn before_approval(&self, _: &HookSession, _: &ApprovalRequest) -> Option<Decision> {
        if self.approval.is_some() {
            self.link.exchange();
        }
        self.approval.clone()
    }
}

/// Runs the session and checks that the call writes inside, or nothing if the link was exchanged.
async fn expect_bound(workspace: &Workspace, is_redirected: bool, case: &str, session: &Session) {
    assert_eq!(session.submit("go").await.unwrap().status, OutcomeStatus::Completed);
    let results = results(session);
    assert_eq!(workspace.at("project/inside/x").exists(), !is_redirected, "{case}: {results:?}");
    assert!(!workspace.at("outside/x").exists(), "{case}: {results:?}");
    assert_eq!(results[0].contains(REFUSAL), is_redirected, "{case}: {results:?}");
}

fn other_content() -> serde_json::Value {
    json!({"file_path": "here/x", "content": "2"})
}

#[tokio::test]
async fn an_approval_does_not_hold_for_another_file() {
    for decision in [Decision::Approve, Decision::Change { arguments: other_content() }] {
        for is_redirected in [false, true] {
            let workspace = Workspace::new();
            let link = workspace.link(is_redirected);
            let approver = SlowApprover { link, decision: decision.clone() };
            let session = workspace.builder(false).approver(approver).build().unwrap();
            expect_bound(&workspace, is_redirected, &format!("{decision:?}"), &session).await;
        }
    }
}

#[tokio::test]
async fn an_answer_of_a_hook_does_not_hold_for_another_file() {
    let allow = CallAnswer::judge(Permission::Allow, None);
    for (call, approval) in [
        (allow.clone(), None),
        (allow.with_arguments(Some(other_content())), None),
        (CallAnswer::default(), Some(Decision::Approve)),
        (CallAnswer::default(), Some(Decision::Change { arguments: other_content() })),
    ] {
        for is_redirected in [false, true] {
            let workspace = Workspace::new();
            let case = format!("{call:?} {approval:?}");
            let link = workspace.link(is_redirected);
            let hooks = SlowHooks { link, call: call.clone(), approval: approval.clone() };
            let session = workspace.builder(true).hooks(hooks).build().unwrap();
            expect_bound(&workspace, is_redirected, &case, &session).await;
        }
    }
}

/// The fingerprint that a decision names, so that a recorded decision does not hold after a resume either.
#[tokio::test]
async fn a_request_has_another_fingerprint_if_a_path_leads_elsewhere() {
    for is_redirected in [false, true] {
        let workspace = Workspace::new();
        let session = workspace.builder(false).build().unwrap();
        let run = session.submit("go");
        let asked = waiting(&session).await;
        let record = session.record().unwrap();
        drop((run, session));
        workspace.link(is_redirected).exchange();
        let mut session = workspace.builder(false).resume(record).build().unwrap();
        let _run = session.resumed().unwrap();
        assert_eq!(waiting(&session).await != asked, is_redirected);
    }
}
