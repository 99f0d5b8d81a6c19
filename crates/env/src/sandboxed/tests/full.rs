//! The level *full*.

use super::*;

#[tokio::test]
async fn keeps_the_contract_at_level_full() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let environment = Confined::new(Arc::new(environment), [harness.at("root")]);
    environment.initialize().await.unwrap();
    contract::files(&environment, &harness.at("root/files")).await.unwrap();
    contract::search(&environment, &harness.at("root/search")).await.unwrap();
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn exits_and_signals_arrive_from_the_namespace() {
    use crate::ExitStatus;
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    environment.initialize().await.unwrap();
    for (line, status) in [
        ("exit 0", ExitStatus::Exited(0)),
        ("exit 7", ExitStatus::Exited(7)),
        ("exit 255", ExitStatus::Exited(255)),
        ("kill -KILL $$", ExitStatus::Signaled(9)),
        ("kill -TERM $$", ExitStatus::Signaled(15)),
    ] {
        let mut process = environment.spawn(Command::shell(line)).await.unwrap();
        assert_eq!(process.wait().await.unwrap(), status, "{line}");
    }
    environment.cleanup().await.unwrap();
}
