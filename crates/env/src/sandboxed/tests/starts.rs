//! The work at the start and at the end of a command.

use super::*;

#[tokio::test]
async fn the_trial_leaves_no_process_to_the_reaper() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    environment.initialize().await.unwrap();
    assert!(!environment.inner.has_reaper_thread());
    environment.cleanup().await.unwrap();
}
