//! Sandboxed commands that reach some hosts. The built command opens the listener in their network.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pintle::egress::{HostPattern, HostRules, Limits, Proxy, Resolver};
use pintle::host::environment::ProxyGateway;
use pintle_env::{
    ExecRequest, ExecutionEnvironment, ListenerHelper, LocalEnvironment, NetworkGateway, Output,
    SandboxGateway, SandboxLevel, SandboxedEnvironment,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::user::{outside_temporary_directories, program};

/// Resolves all names to this machine.
struct Loopback;

#[async_trait]
impl Resolver for Loopback {
    async fn resolve(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }
}

/// Starts a server that answers `served`, and with a redirect to another host at `/away`. Returns its port.
pub(super) async fn start_server(tasks: &mut JoinSet<()>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap_or(0);
            let answer = if request[..length].starts_with(b"GET /away") {
                "HTTP/1.1 302 Found\r\nlocation: http://elsewhere.example/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            } else {
                "HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: close\r\n\r\nserved\n"
            };
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    port
}

fn gateway(proxy: &Proxy, allow: &[String]) -> ProxyGateway {
    let patterns: Vec<HostPattern> = allow.iter().map(|text| text.parse().unwrap()).collect();
    let helper = ListenerHelper::new(program(), ["--listen-in-sandbox"]);
    ProxyGateway::new(proxy.clone(), HostRules::new(patterns, []), helper)
}

fn sandbox(directory: &Path, gateway: Arc<dyn NetworkGateway>) -> SandboxedEnvironment {
    let path = std::env::var_os("PATH").unwrap();
    let local = LocalEnvironment::builder(directory).with_variable("PATH", path).build().unwrap();
    SandboxedEnvironment::new(local)
        .with_level(SandboxLevel::Full)
        .with_writable(directory)
        .with_gateway(gateway)
        .with_start_ahead(true)
}

/// Runs a command. Returns whether it succeeded, and its output.
async fn run(environment: &SandboxedEnvironment, line: &str) -> (bool, String) {
    let result = environment.exec_command(ExecRequest::new(line)).await.unwrap();
    let text = |output: &Output| output.to_text_lossy().unwrap();
    (result.success(), format!("{}{}", text(&result.stdout), text(&result.stderr)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_reach_only_named_hosts() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let directory = tempfile::tempdir_in(outside_temporary_directories()).unwrap();
    let mut tasks = JoinSet::new();
    let port = start_server(&mut tasks).await;
    let proxy = Proxy::new(Arc::new(Loopback), Limits::default());
    let allow = [format!("allowed.example:{port}"), format!("127.0.0.1:{port}")];
    let environment = sandbox(directory.path(), Arc::new(gateway(&proxy, &allow)));
    environment.initialize().await.unwrap();

    // In a new sandbox, and in those that were started ahead.
    let get = format!("curl -sS -m 10 http://allowed.example:{port}/; echo $HTTP_PROXY");
    let mut credentials = BTreeSet::new();
    for _ in 0..3 {
        let (_, output) = run(&environment, &get).await;
        let (body, credential) = output.split_once('\n').unwrap();
        assert_eq!(body, "served", "{output}");
        assert!(credentials.insert(credential.to_owned()), "each call has a credential: {output}");
    }
    let tunnel = format!("curl -sS -m 10 --proxytunnel http://allowed.example:{port}/");
    assert_eq!(run(&environment, &tunnel).await, (true, "served\n".to_owned()));

    for (line, refusal) in [
        ("curl -sS -m 10 http://other.example/", "other.example:80: no rule names it"),
        ("curl -sS -m 10 https://other.example/", "other.example:443: no rule names it"),
        ("curl -sS -m 10 http://allowed.example/", "allowed.example:80: no rule names it"),
        ("curl -sS -m 10 http://1.1.1.1/", "1.1.1.1:80: it is an address, and no rule names the address"),
        ("curl -sSL -m 10 http://allowed.example:{port}/away", "elsewhere.example:80: no rule names it"),
        (
            "curl -sS -m 10 -H 'Host: other.example' http://allowed.example:{port}/",
            "allowed.example:{port}: the request names the host `other.example`",
        ),
    ] {
        let [line, refusal] = [line, refusal].map(|text| text.replace("{port}", &port.to_string()));
        let (_, output) = run(&environment, &line).await;
        let expected = format!("The network of the sandbox refused these connections:\n- {refusal}\n");
        assert!(output.ends_with(&expected), "{line}: {output}");
        assert!(!output.contains("served"), "{line}: {output}");
    }

    // Programs that ignore the variables have no way out: TCP, UDP and so DNS and QUIC, and IPv6.
    for line in [
        format!("curl -sS -m 10 --noproxy '*' http://127.0.0.1:{port}/").as_str(),
        "curl -sS -m 10 --noproxy '*' http://192.0.2.1/",
        "curl -sS -m 10 -g --noproxy '*' 'http://[2001:db8::1]/'",
        "curl -sS -m 10 --noproxy '*' http://allowed.example/",
        "echo x >/dev/udp/192.0.2.1/53",
        "env -u HTTP_PROXY -u http_proxy -u ALL_PROXY -u all_proxy curl -sS -m 10 http://other.example/",
        "curl -sS -m 10 -fx http://pintle:wrong@127.0.0.1:47813 http://allowed.example/",
    ] {
        let (success, output) = run(&environment, line).await;
        assert!(!success && !output.contains("served"), "{line}: {output}");
    }
    environment.cleanup().await.unwrap();
    assert_eq!(proxy.credentials(), 0, "a session leaves no credential");
}

/// A proxy that ends before it serves.
#[derive(Debug)]
struct DeadProxy(ProxyGateway);

struct DeadGateway(Arc<dyn SandboxGateway>);

impl NetworkGateway for DeadProxy {
    fn helper(&self) -> ListenerHelper {
        self.0.helper()
    }

    fn open(&self) -> io::Result<Arc<dyn SandboxGateway>> {
        Ok(Arc::new(DeadGateway(self.0.open()?)))
    }
}

impl SandboxGateway for DeadGateway {
    fn variables(&self, address: SocketAddr) -> Vec<(OsString, OsString)> {
        self.0.variables(address)
    }

    fn serve(&self, listener: std::net::TcpListener) -> io::Result<()> {
        drop(listener);
        Ok(())
    }

    fn notice(&self) -> Option<String> {
        self.0.notice()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_lose_the_network_with_their_proxy() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let directory = tempfile::tempdir_in(outside_temporary_directories()).unwrap();
    let mut tasks = JoinSet::new();
    let port = start_server(&mut tasks).await;
    let proxy = Proxy::new(Arc::new(Loopback), Limits::default());
    let allow = [format!("allowed.example:{port}"), format!("127.0.0.1:{port}")];
    let dead = DeadProxy(gateway(&proxy, &allow));
    let environment = sandbox(directory.path(), Arc::new(dead));
    environment.initialize().await.unwrap();
    let (success, output) =
        run(&environment, &format!("curl -sS -m 10 http://allowed.example:{port}/")).await;
    assert!(!success && !output.contains("served"), "{output}");
    environment.cleanup().await.unwrap();
    assert_eq!(proxy.credentials(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_is_ended_leaves_no_credential() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let directory = tempfile::tempdir_in(outside_temporary_directories()).unwrap();
    let proxy = Proxy::new(Arc::new(Loopback), Limits::default());
    let environment = sandbox(directory.path(), Arc::new(gateway(&proxy, &[])));
    environment.initialize().await.unwrap();
    let request = ExecRequest::new("sleep 1000").with_timeout(Duration::from_secs(1));
    let result = environment.exec_command(request).await.unwrap();
    assert!(result.timed_out, "{result:?}");
    environment.cleanup().await.unwrap();
    assert_eq!(proxy.credentials(), 0);
}

#[test]
fn the_helper_does_nothing_without_a_request() {
    let mut command = std::process::Command::new(program());
    let output = command.arg("--listen-in-sandbox").stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len(), output.stderr.len()), (Some(1), 0, 0));
}
