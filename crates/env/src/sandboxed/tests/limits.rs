//! What a level does not have, and what is refused before a command runs.

use super::*;

fn unsupported(error: &EnvError) -> &str {
    let EnvError::Unsupported { operation, .. } = error else { panic!("{error:?}") };
    operation
}

#[tokio::test]
async fn the_level_writes_neither_hides_nor_protects() {
    let harness = Harness::new();
    let Some(environment) = harness.sandboxed().await else { return };
    let environment = environment.with_hidden("../outside/secret");
    let error = environment.initialize().await.unwrap_err();
    assert!(unsupported(&error).contains("only `full` can hide"), "{error}");
    let error = environment.exec_command(ExecRequest::new("true")).await.unwrap_err();
    assert!(unsupported(&error).contains("only `full` can hide"), "{error}");
    let Some(environment) = harness.sandboxed().await else { return };
    // Nothing is writable there anyway.
    let environment = environment.with_protected("../outside/secret");
    environment.initialize().await.unwrap();
    std::os::unix::fs::symlink(harness.at("root"), harness.at("").join("alias")).unwrap();
    let environment = environment.with_protected("../alias/.git/config");
    let error = environment.initialize().await.unwrap_err();
    assert!(unsupported(&error).contains("only `full` can"), "{error}");
    assert!(environment.unenforced().await.unwrap().contains(&Protection::ProtectedPaths));
    let environment = environment.with_accepted(Protection::ProtectedPaths);
    environment.initialize().await.unwrap();
    assert!(run(&environment, "mkdir .git && echo x >.git/config").await.success());
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn an_unavailable_level_starts_nothing() {
    let harness = Harness::new();
    let support = SandboxSupport::probe(&harness.local()).await.unwrap();
    let message = "setting up uid map: Permission denied".to_owned();
    for (level, reason, expected) in [
        (
            SandboxLevel::Full,
            SandboxUnavailable::NoBubblewrap,
            "bwrap, the program of bubblewrap, was not found",
        ),
        (
            SandboxLevel::Full,
            SandboxUnavailable::BubblewrapTooOld { found: "bubblewrap 0.4.1".to_owned() },
            "bubblewrap 0.4.1 is too old",
        ),
        (
            SandboxLevel::Full,
            SandboxUnavailable::NoUserNamespaces { message: message.clone() },
            "not allowed",
        ),
        (SandboxLevel::Full, SandboxUnavailable::BubblewrapFailed { message }, "cannot set up the sandbox"),
        (SandboxLevel::Writes, SandboxUnavailable::NoLandlock, "no Landlock"),
        (SandboxLevel::Writes, SandboxUnavailable::LandlockTooOld { found: 2 }, "version 2"),
    ] {
        let support = support.clone().without(level, reason.clone());
        assert!(!support.levels().contains(&level));
        assert_eq!(support.unavailable(level), Some(&reason));
        let environment = SandboxedEnvironment::new(harness.local()).with_level(level).with_support(support);
        for accepted in [Protection::Writes, Protection::Signals] {
            let environment =
                SandboxedEnvironment { inner: harness.local().into(), ..environment_like(&environment) };
            let environment = environment.with_accepted(accepted);
            let error = environment.initialize().await.unwrap_err();
            assert!(unsupported(&error).contains(expected), "{error}");
            let error = environment.exec_command(ExecRequest::new("echo x >ran")).await.unwrap_err();
            assert!(unsupported(&error).contains(expected), "{error}");
        }
        assert!(!harness.at("root/ran").exists());
    }
}

/// Each version of Landlock below the one that has everything: nothing starts unless what is missing is accepted.
#[tokio::test]
async fn an_older_landlock_is_refused_or_accepted_by_what_it_lacks() {
    use Protection::{Devices, Signals};
    let harness = Harness::new();
    let support = SandboxSupport::probe(&harness.local()).await.unwrap();
    if !has_level(SandboxLevel::Writes) {
        return;
    }
    for (version, missing) in [
        (0, None),
        (1, None),
        (2, None),
        (3, Some(vec![Devices, Signals])),
        (4, Some(vec![Devices, Signals])),
        (5, Some(vec![Signals])),
        (6, Some(vec![])),
        (7, Some(vec![])),
    ] {
        let sandbox = || {
            let environment = SandboxedEnvironment::new(harness.local()).with_level(SandboxLevel::Writes);
            environment.with_support(support.clone().with_landlock(version))
        };
        let Some(missing) = missing else {
            let accepting = sandbox().with_accepted(Devices).with_accepted(Signals);
            let error = accepting.initialize().await.unwrap_err();
            let error = unsupported(&error);
            assert!(error.contains("Landlock"), "{version}: {error}");
            continue;
        };
        let unenforced = sandbox().unenforced().await.unwrap();
        assert_eq!(unenforced, missing.iter().copied().collect(), "{version}");
        let mut accepting = sandbox();
        for protection in &missing {
            let error = accepting.initialize().await.unwrap_err();
            let error = unsupported(&error);
            assert!(error.contains(&protection.to_string()), "{version}: {error}");
            accepting = accepting.with_accepted(*protection);
        }
        accepting.initialize().await.unwrap();
        assert!(!run(&accepting, "echo x >../outside/new").await.success(), "{version}");
        accepting.cleanup().await.unwrap();
    }
}

/// Returns a sandbox with the same rules.
fn environment_like(environment: &SandboxedEnvironment) -> SandboxedEnvironment {
    SandboxedEnvironment {
        inner: LocalEnvironment::builder("/").build().unwrap().into(),
        can_be_left: false,
        rules: Arc::clone(&environment.rules),
        placeholders: Arc::default(),
        replaced: ReplacedPaths::default(),
        support: environment.support.clone(),
        failure: Arc::default(),
        next: None,
    }
}

#[tokio::test]
async fn bubblewrap_is_found_by_absolute_directories_only() {
    let harness = Harness::new();
    for path in ["", ".:bin", "/nonexistent"] {
        let local =
            LocalEnvironment::builder(harness.at("root")).with_variable("PATH", path).build().unwrap();
        let support = SandboxSupport::probe(&local).await.unwrap();
        assert_eq!(support.unavailable(SandboxLevel::Full), Some(&SandboxUnavailable::NoBubblewrap));
        assert_eq!(support.bubblewrap_version(), None);
    }
    for (script, expected) in [
        (
            "echo bubblewrap 0.3.1",
            SandboxUnavailable::BubblewrapTooOld { found: "bubblewrap 0.3.1".to_owned() },
        ),
        (
            "[ $1 != --version ] || { echo bubblewrap 0.9.0; exit; }; echo bwrap: no namespace >&2; exit 1",
            SandboxUnavailable::NoUserNamespaces { message: "no namespace".to_owned() },
        ),
        (
            "[ $1 != --version ] || { echo bubblewrap 0.9.0; exit; }; [ $# != 8 ] || exit 0; echo bwrap: no mount >&2; exit 1",
            SandboxUnavailable::BubblewrapFailed { message: "no mount".to_owned() },
        ),
    ] {
        use std::os::unix::fs::PermissionsExt;
        let program = harness.at("outside/bwrap");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let builder =
            LocalEnvironment::builder(harness.at("root")).with_variable("PATH", harness.at("outside"));
        let support = SandboxSupport::probe(&builder.build().unwrap()).await.unwrap();
        assert_eq!(support.unavailable(SandboxLevel::Full), Some(&expected));
    }
}

#[tokio::test]
async fn bubblewrap_must_not_be_writable() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let environment = environment.with_writable("/usr");
    let error = environment.exec_command(ExecRequest::new("true")).await.unwrap_err();
    let EnvError::Spawn { source, .. } = error else { panic!("{error:?}") };
    assert!(source.to_string().contains("is writable for sandboxed commands"), "{source}");
}

#[tokio::test]
async fn a_file_with_several_names_is_hidden_under_the_given_one() {
    let harness = Harness::new();
    fs::hard_link(harness.at("outside/secret"), harness.at("outside").join("other")).unwrap();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let environment = environment.with_hidden("../outside/secret");
    environment.initialize().await.unwrap();
    assert!(run(&environment, "! cat ../outside/secret && cat ../outside/other").await.success());
}

#[tokio::test]
async fn a_protected_link_is_refused() {
    let harness = Harness::new();
    fs::create_dir(harness.at("root").join("settings")).unwrap();
    std::os::unix::fs::symlink("settings", harness.at("root").join("link")).unwrap();
    for path in ["link", "link/file"] {
        let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
        let environment = environment.with_protected(path);
        let error = environment.initialize().await.unwrap_err();
        assert!(matches!(error, EnvError::Refused { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn placeholders_are_removed_by_cleanup() {
    let harness = Harness::new();
    fs::create_dir(harness.at("root").join("dir")).unwrap();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let environment =
        environment.with_protected("dir/file").with_protected("none/file").with_protected("kept/file");
    environment.initialize().await.unwrap();
    for path in ["dir/file", "none", "kept"] {
        assert!(harness.at("root").join(path).exists(), "{path}");
    }
    // The user may put something there meanwhile.
    fs::write(harness.at("root").join("kept/file"), "x").unwrap();
    assert!(run(&environment, "cat kept/file && ! echo y >kept/file").await.success());
    environment.cleanup().await.unwrap();
    assert!(!harness.at("root").join("dir/file").exists() && !harness.at("root").join("none").exists());
    assert_eq!(fs::read_to_string(harness.at("root/kept/file")).unwrap(), "x");
}

/// As in a container: the default filter of Docker refuses `unshare`.
#[test]
fn descriptors_are_inherited_only_if_accepted() {
    if !has_level(SandboxLevel::Writes) {
        return;
    }
    let harness = Harness::new();
    let refuse_unshare = || {
        let refused = std::collections::BTreeMap::from([(nix::libc::SYS_unshare, Vec::new())]);
        let architecture = std::env::consts::ARCH.try_into().unwrap();
        let errno = seccompiler::SeccompAction::Errno(1);
        let filter =
            seccompiler::SeccompFilter::new(refused, seccompiler::SeccompAction::Allow, errno, architecture);
        let program: seccompiler::BpfProgram = filter.unwrap().try_into().unwrap();
        seccompiler::apply_filter(&program).unwrap();
    };
    // All threads of the runtime inherit the filter, and nothing else does.
    let limited = std::thread::spawn(move || {
        refuse_unshare();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let environment = SandboxedEnvironment::new(harness.local()).with_writable(harness.at("root"));
            assert!(environment.unenforced().await.unwrap().contains(&Protection::Descriptors));
            let error = environment.initialize().await.unwrap_err();
            assert!(unsupported(&error).contains("inherited file descriptors"), "{error}");
            let error = environment.exec_command(ExecRequest::new("true")).await.unwrap_err();
            assert!(matches!(error, EnvError::Spawn { .. }), "{error:?}");
            let environment = environment.with_accepted(Protection::Descriptors);
            environment.initialize().await.unwrap();
            assert!(run(&environment, "echo x >file").await.success());
            assert!(!run(&environment, "echo x >../outside/new").await.success());
            environment.cleanup().await.unwrap();
        });
    });
    limited.join().unwrap();
}
