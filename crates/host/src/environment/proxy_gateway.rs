//! Commands that reach some hosts, through a proxy of this process.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io,
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex, PoisonError},
};

use pintle_egress::{Admission, HostRules, Proxy};
use pintle_env::{ListenerHelper, NetworkGateway, SandboxGateway};
use tokio::task::JoinSet;

/// Most refused hosts that the output of a command names.
const MAX_SHOWN: usize = 16;

/// The way of sandboxed commands to the hosts that rules allow. Each command has a separate credential of the proxy.
#[derive(Clone, Debug)]
pub struct ProxyGateway {
    proxy: Proxy,
    rules: HostRules,
    helper: ListenerHelper,
}

impl ProxyGateway {
    /// Returns a gateway through this proxy. `helper` opens a listener in the sandbox of each command.
    #[must_use]
    pub fn new(proxy: Proxy, rules: HostRules, helper: ListenerHelper) -> Self {
        Self { proxy, rules, helper }
    }
}

impl NetworkGateway for ProxyGateway {
    fn helper(&self) -> ListenerHelper {
        self.helper.clone()
    }

    fn open(&self) -> io::Result<Arc<dyn SandboxGateway>> {
        let admission = self.proxy.admit(self.rules.clone()).map_err(io::Error::other)?;
        Ok(Arc::new(CommandGateway { proxy: self.proxy.clone(), admission, tasks: Mutex::default() }))
    }
}

/// The gateway of one command.
struct CommandGateway {
    proxy: Proxy,
    admission: Admission,
    /// Serves the listener in its sandbox.
    tasks: Mutex<JoinSet<()>>,
}

impl SandboxGateway for CommandGateway {
    fn variables(&self, address: SocketAddr) -> Vec<(OsString, OsString)> {
        let variables = self.admission.variables(address).into_iter();
        variables.map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn serve(&self, listener: TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let proxy = self.proxy.clone();
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.spawn(async move {
            // A command whose listener fails has no network.
            let _error = proxy.serve(listener).await;
        });
        Ok(())
    }

    fn notice(&self) -> Option<String> {
        let report = self.admission.traffic();
        let lines: BTreeSet<String> = report
            .refused()
            .map(|(target, refusal)| match target {
                "" => format!("- a request: {refusal}"),
                target => format!("- {target}: {refusal}"),
            })
            .collect();
        if lines.is_empty() {
            return None;
        }
        let omitted = lines.len().saturating_sub(MAX_SHOWN);
        let mut text = "The network of the sandbox refused these connections:".to_owned();
        for line in lines.iter().take(MAX_SHOWN) {
            text.push('\n');
            text.push_str(line);
        }
        if omitted > 0 || report.omitted > 0 {
            text.push_str("\n- and further hosts");
        }
        Some(text)
    }
}
