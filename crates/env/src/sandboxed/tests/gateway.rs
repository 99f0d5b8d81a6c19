//! Commands that reach some hosts. That they do is tested with the built command, which is the helper.

use std::{
    ffi::OsString,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
};

use super::*;

/// A gateway whose helper does nothing.
#[derive(Clone, Debug, Default)]
struct BrokenGateway {
    opened: Arc<AtomicUsize>,
}

struct Opened;

impl NetworkGateway for BrokenGateway {
    fn helper(&self) -> ListenerHelper {
        ListenerHelper::new("/bin/sh", ["-c", "exit 0"])
    }

    fn open(&self) -> io::Result<Arc<dyn SandboxGateway>> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Opened))
    }
}

impl SandboxGateway for Opened {
    fn variables(&self, address: SocketAddr) -> Vec<(OsString, OsString)> {
        vec![("GATEWAY".into(), address.to_string().into())]
    }

    fn serve(&self, _listener: TcpListener) -> io::Result<()> {
        Ok(())
    }

    fn notice(&self) -> Option<String> {
        None
    }
}

#[tokio::test]
async fn a_gateway_needs_the_level_full() {
    let harness = Harness::new();
    let Some(environment) = harness.sandboxed().await else { return };
    let error = environment.with_gateway(Arc::new(BrokenGateway::default())).initialize().await.unwrap_err();
    assert!(error.to_string().contains("limiting commands to some hosts"), "{error}");
}

#[tokio::test]
async fn a_command_does_not_start_without_its_gateway() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let gateway = BrokenGateway::default();
    let environment = environment.with_gateway(Arc::new(gateway.clone()));
    environment.initialize().await.unwrap();
    let limits = environment.command_limits().unwrap();
    assert!(limits.contains("reach only some hosts"), "{limits}");
    let error = environment.spawn(Command::shell("touch started")).await.err().unwrap();
    assert!(matches!(error, EnvError::Refused { .. }), "{error}");
    assert!(!harness.at("root/started").exists());
    assert_eq!(gateway.opened.load(Ordering::Relaxed), 1);
    // These have no network at all.
    let line = "test -z \"$GATEWAY\" && ! cat </dev/tcp/127.0.0.1/47813";
    let read_only = Command::shell(line).read_only();
    let piped = Command::shell(line).with_stdin(crate::Stdin::Piped);
    for command in [read_only, piped] {
        let mut process = environment.spawn(command).await.unwrap();
        drop(process.take_stdin());
        assert_eq!(process.wait().await.unwrap(), crate::ExitStatus::Exited(0));
    }
    // Nor has a command that may use the network of the machine.
    let result = run(&environment.clone().with_network(true), "test -z \"$GATEWAY\"").await;
    assert!(result.success(), "{result:?}");
    assert_eq!(gateway.opened.load(Ordering::Relaxed), 1);
    environment.cleanup().await.unwrap();
}
