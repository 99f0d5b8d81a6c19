//! Names in audits, and in what hooks, revocations and watches keep. `schema/grant.json` has the names in grants.

use pintle_agent::ApprovalEnding;
use pintle_test_conditions::SerialisedValues;
use pintle_tools::RepairKind;

use crate::audit::{AuditReport, CallOutcome, InputSource, NoticeKind, ReachedLimit, RecoveryAction};
use crate::hooks::{HookAnswer, HookEvent, HookFailure, HookRun};
use crate::{Mode, RevokedGrants, WatchedFiles};

#[test]
fn serialised_names_are_those_of_the_fixture() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/serialised/audit.json"));
    let mut values = SerialisedValues::parse(text);
    values.check::<AuditReport>("reports");
    values.check_variants::<CallOutcome>("outcomes of calls", None);
    values.check_variants::<InputSource>("sources of inputs", None);
    values.check_variants::<ReachedLimit>("reached limits", Some("kind"));
    values.check_variants::<NoticeKind>("kinds of notices", None);
    values.check_variants::<RecoveryAction>("recoveries", None);
    values.check_variants::<ApprovalEnding>("ends of approvals", None);
    values.check_variants::<RepairKind>("repairs", None);
    values.check_variants::<Mode>("modes", None);
    values.check::<RevokedGrants>("revoked grants");
    values.check::<WatchedFiles>("watched files");
    values.check::<HookRun>("runs of hooks");
    values.check_variants::<HookEvent>("events of hooks", None);
    values.check_variants::<HookAnswer>("answers of hooks", None);
    values.check_variants::<HookFailure>("failures of hooks", None);
    values.finish();
}
