//! A process that is stopped, and continued after another one has taken its session over.

use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::{sleep, timeout};

use super::*;

/// Name of the schema, for the child.
const CHILD: &str = "PINTLE_TEST_POSTGRES_CHILD";

const LEASE: Duration = Duration::from_secs(5);

/// Kills the child when the test ends.
struct KillOnDrop(Child);

impl KillOnDrop {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().try_into().unwrap()), signal).unwrap();
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The child: writes as long as its fence holds, then tries to write once more.
#[tokio::test]
async fn child_writes_while_it_has_the_session() {
    let Ok(name) = std::env::var(CHILD) else { return };
    let connection = std::env::var("PINTLE_TEST_POSTGRES").unwrap();
    let options = PostgresOptions::new().with_schema(name).with_lease(LEASE);
    let store = PostgresStore::connect(&connection, options).await.unwrap();
    let mut writer = store.create_writer(&summary()).await.unwrap();
    let fence = writer.fence();
    let mut number = 0;
    while fence.check().is_ok() {
        // It may be stopped between the check and the answer.
        if append(&mut writer, number).await.is_err() {
            break;
        }
        number += 1;
        sleep(Duration::from_millis(10)).await;
    }
    fence.check().unwrap_err();
    let refused = append(&mut writer, 1_000_000).await;
    assert!(matches!(refused, Err(StoreError::Lost(_))), "{refused:?}");
}

#[tokio::test]
async fn a_stopped_process_can_do_nothing_when_it_continues() {
    let Some(schema) = Schema::create() else { return };
    let store = schema.store_with(schema.options().with_lease(LEASE)).await;
    let name = concat!(module_path!(), "::child_writes_while_it_has_the_session");
    let name = name.split_once("::").unwrap().1;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name]).env(CHILD, &schema.name).stdout(Stdio::null());
    let mut child = KillOnDrop(command.spawn().unwrap());
    let reader = async {
        loop {
            match store.read(&id(), 1).await {
                Ok(reader) => return reader,
                Err(StoreError::NotFound(_)) => sleep(Duration::from_millis(20)).await,
                Err(error) => panic!("{error:?}"),
            }
        }
    };
    let mut reader = timeout(PATIENCE, reader).await.unwrap();
    while awaited(reader.as_mut()).await < 3 {}
    child.signal(Signal::SIGSTOP);
    let pid = child.0.id();
    let error = store.open_writer(&id()).await.unwrap_err();
    assert!(matches!(&error, StoreError::InUse { holder, .. } if holder.pid == pid), "{error:?}");
    let opened = async {
        loop {
            match store.open_writer(&id()).await {
                Ok(writer) => return writer,
                Err(StoreError::InUse { .. }) => sleep(Duration::from_millis(50)).await,
                Err(error) => panic!("{error:?}"),
            }
        }
    };
    let mut writer = timeout(PATIENCE, opened).await.unwrap();
    let taken = append(&mut writer, 500_000).await.unwrap();
    child.signal(Signal::SIGCONT);
    let ended = async {
        loop {
            if let Some(status) = child.0.try_wait().unwrap() {
                return status;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(timeout(PATIENCE, ended).await.unwrap().success());
    assert_eq!(writer.head(), taken);
    assert_eq!(all(&store).await.last(), Some(&500_000));
    append(&mut writer, 500_001).await.unwrap();
    assert!(store.verify(&id(), Some(&taken)).await.unwrap().is_intact());
}
