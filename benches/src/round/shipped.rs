//! Rounds of the shipped command with its default settings, compared with the same without sandbox and store.

use crate::goals::goal;
use crate::measure::{Aim, Comparison, Cost, Round, cost_of};
use crate::model::ModelServer;
use crate::plan::Plan;
use crate::report::Report;
use crate::shipped::{BARE, LARGE, MODEL, SMALL, User, succeed};

/// Commands of a measured run.
const ROUNDS: usize = 20;

/// Repeats of each row.
const REPEATS: usize = 15;

/// A repository in which the rounds run.
struct Case {
    what: &'static str,
    files: usize,
    wall: &'static str,
    cpu: &'static str,
}

const CASES: [Case; 2] = [
    Case {
        what: "20 rounds with the command `true` as shipped, 4 files",
        files: SMALL,
        wall: "round-wall",
        cpu: "round-cpu",
    },
    Case {
        what: "20 rounds with the command `true` as shipped, 10,000 files",
        files: LARGE,
        wall: "round-large-wall",
        cpu: "round-large-cpu",
    },
];

pub(super) fn run(wanted: &str, model: &ModelServer, report: &mut Report) {
    for case in CASES.iter().filter(|case| case.what.contains(wanted)) {
        let user = User::new();
        let directory = user.create_project(case.files);
        let run_of = |rounds: usize, flags: &[&str]| -> Cost {
            let endpoint = model.endpoint(&Plan::rounds("exec_command", rounds));
            let mut pintle = user.pintle(&directory);
            pintle.args(["run", "--provider", "openai", "--model", MODEL, "--base-url"]);
            pintle.arg(endpoint.base_url()).arg("Do it.").args(flags);
            let cost = cost_of(|| succeed(&mut pintle));
            assert_eq!(endpoint.sent().len(), rounds + 1, "each command has a request with its result");
            cost
        };
        // The difference is the cost of the rounds alone, without the start and the end of the process.
        let round = |flags: &[&str]| {
            let (with_rounds, without) = (run_of(ROUNDS, flags), run_of(0, flags));
            with_rounds.less(without).per(super::count(ROUNDS))
        };
        let aim = Aim::Each { wall: goal(case.wall), cpu: goal(case.cpu) };
        let row = Comparison::new(case.what, "the same with --no-sandbox --no-session", aim)
            .with_rounds(REPEATS)
            .compare(|| round(&BARE), || round(&[]));
        let more = row.spread(Round::more).map_or(0.0, |spread| spread.median);
        let row = row.with_note(format!("{}: a round takes {more:.1} ms more", case.what));
        report.push_figures(row, &[(case.wall, Round::wall), (case.cpu, Round::cpu)]);
    }
}
