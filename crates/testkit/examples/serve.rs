//! Temporary.
use pintle_testkit::*;
#[tokio::main]
async fn main() {
    let script = Script::parse(include_str!("../../../examples/scripts/demo.toml")).unwrap();
    let s = ScriptedServer::start(script, ServerOptions::new().with_bind("127.0.0.1:18099".parse().unwrap())).await.unwrap();
    tokio::select! { () = s.serve_forever() => {}, () = tokio::time::sleep(std::time::Duration::from_secs(240)) => {} }
}
