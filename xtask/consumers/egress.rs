//! Judges targets by rules, and draws a credential for them.

use std::sync::Arc;

use pintle_egress::{HostRules, Limits, Proxy, SystemResolver, Target};

fn main() {
    let allow = ["*.example.com".parse().expect("a host")];
    let rules = HostRules::new(allow, []);
    let target = |text| Target::parse(text, None).expect("a target");
    assert!(rules.check(&target("a.example.com:443")).is_ok());
    assert!(rules.check(&target("a.example.org:443")).is_err());
    let proxy = Proxy::new(Arc::new(SystemResolver), Limits::default());
    let call = proxy.admit(rules).expect("a credential");
    assert!(call.url(([127, 0, 0, 1], 3128).into()).contains(call.token()));
}
