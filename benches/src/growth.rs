//! Growth of the CPU time of sessions, beside that of the loop written by hand.

use std::sync::Arc;

use crate::curve::{Curve, Line};
use crate::measure::{Moment, Spread, milliseconds};
use crate::plan::{PARENT, Plan};
use crate::report::Report;
use crate::round::{Harness, RoundPlan, Setup, work, work_by_hand};
use crate::sessions::{self, CallTimes, NoopTool};

/// Function that measures one curve.
type Draw = fn(&Harness) -> Curve;

const CURVES: [(&str, Draw); 6] = [
    ("rounds", rounds),
    ("history", history),
    ("tools", tools),
    ("calls", calls),
    ("sessions", concurrent_sessions),
    ("subagents", subagents),
];

const ROUNDS: [usize; 11] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000];
const HISTORIES: [usize; 6] = [10_000, 100_000, 500_000, 2_000_000, 8_000_000, 20_000_000];
const TOOLS: [usize; 6] = [1, 5, 20, 80, 200, 500];
const CALLS: [usize; 7] = [1, 3, 8, 20, 50, 100, 200];
const SESSIONS: [usize; 6] = [1, 4, 16, 64, 250, 1_000];
const SUBAGENTS: [usize; 6] = [1, 3, 8, 20, 50, 100];

const OURS: &str = "Pintle";
const BASELINE: &str = "by hand";

/// Number of measurements per point.
const REPEATS: usize = 3;

pub(crate) fn run(wanted: &str) -> Report {
    let harness = Harness::new();
    let wanted = CURVES.iter().filter(|(name, _)| name.contains(wanted));
    Report { curves: wanted.map(|(_, draw)| draw(&harness)).collect(), ..Report::default() }
}

fn rounds(harness: &Harness) -> Curve {
    let rounds_plan = RoundPlan { tool: "note", rounds: 2_000 };
    let head = harness.head(Setup::default);
    let ours: Vec<_> =
        (0..REPEATS).map(|_| harness.subject(&harness.endpoint(rounds_plan), Setup::default())).collect();
    let baselines: Vec<_> =
        (0..REPEATS).map(|_| harness.baseline(&head, &harness.endpoint(rounds_plan))).collect();
    let line = |name, runs: &[Vec<Moment>]| {
        let point = |round: usize| {
            // The average over rounds within a tenth of this one.
            let (from, to) =
                ((round - round.div_ceil(10)).max(1) - 1, (round + round / 10).min(rounds_plan.rounds));
            median(runs.iter().filter_map(|moments| each(moments.get(from)?, moments.get(to)?, to - from)))
        };
        Line { name, points: ROUNDS.into_iter().map(|round| (number(round), point(round))).collect() }
    };
    Curve {
        file: "growth-rounds",
        title: "CPU of a round, by its number",
        x: "round of the session",
        y: "µs of CPU",
        lines: vec![line(OURS, &ours), line(BASELINE, &baselines)],
    }
}

fn history(harness: &Harness) -> Curve {
    let setup = |bytes| Setup { start: Some(sessions::history(bytes)), ..Setup::default() };
    let lines = both(harness, &HISTORIES, 6, |bytes| (setup(bytes), 1));
    Curve {
        file: "growth-history",
        title: "CPU of a round, by the history that it sends",
        x: "bytes of history",
        y: "µs of CPU",
        lines,
    }
}

fn tools(harness: &Harness) -> Curve {
    let setup = |count| {
        let mut setup = Setup::default();
        let registry = &mut setup.profile.tool_registry;
        for index in 1..count {
            registry.register(NoopTool::new(format!("note_{index}"))).expect("the tool is well formed");
        }
        setup
    };
    let lines = both(harness, &TOOLS, 20, |count| (setup(count), 1));
    Curve {
        file: "growth-tools",
        title: "CPU of a round, by the tools that it offers besides the profile's",
        x: "tools",
        y: "µs of CPU",
        lines,
    }
}

fn calls(harness: &Harness) -> Curve {
    let lines = both(harness, &CALLS, 6, |count| (Setup::default(), count));
    Curve {
        file: "growth-calls",
        title: "CPU of a round, by the calls that it has at once",
        x: "calls",
        y: "µs of CPU",
        lines,
    }
}

/// Measures both sides over `rounds`. `setup` also returns the number of calls per round.
fn both(
    harness: &Harness,
    xs: &[usize],
    rounds: usize,
    setup: impl Fn(usize) -> (Setup, usize),
) -> Vec<Line> {
    let points = xs.iter().map(|x| {
        let calls = setup(*x).1;
        let plan = Plan::Rounds { tool: "note".to_owned(), rounds: rounds + 1, calls };
        let head = harness.head(|| setup(*x).0);
        let cost = |moments: Vec<Moment>| {
            // From the end of the first round to the end of the last one.
            each(moments.get(calls - 1)?, moments.last()?, rounds)
        };
        let ours =
            (0..REPEATS).filter_map(|_| cost(harness.subject(&harness.model.endpoint(&plan), setup(*x).0)));
        let ours = median(ours);
        let baseline = median(
            (0..REPEATS).filter_map(|_| cost(harness.baseline(&head, &harness.model.endpoint(&plan)))),
        );
        (number(*x), ours, baseline)
    });
    let points: Vec<_> = points.collect();
    vec![
        Line { name: OURS, points: points.iter().map(|(x, ours, _)| (*x, *ours)).collect() },
        Line { name: BASELINE, points: points.iter().map(|(x, _, baseline)| (*x, *baseline)).collect() },
    ]
}

fn concurrent_sessions(harness: &Harness) -> Curve {
    let plan = Plan::rounds("note", 3);
    let head: Arc<[u8]> = harness.head(Setup::default).into();
    let ours = |count: usize| {
        at_once(harness, count, || {
            work(
                harness.model.endpoint(&plan),
                harness.directory().to_path_buf(),
                Setup::default(),
                CallTimes::default(),
            )
        })
    };
    let baseline = |count: usize| {
        at_once(harness, count, || {
            work_by_hand(harness.model.endpoint(&plan), head.to_vec(), CallTimes::default())
        })
    };
    let point = |count: usize, side: &dyn Fn(usize) -> f64| {
        (number(count), median((0..REPEATS).map(|_| side(count))) / number(count))
    };
    Curve {
        file: "growth-sessions",
        title: "CPU of a session of three rounds, by the sessions at once",
        x: "sessions",
        y: "µs of CPU each",
        lines: vec![
            Line { name: OURS, points: SESSIONS.into_iter().map(|count| point(count, &ours)).collect() },
            Line {
                name: BASELINE,
                points: SESSIONS.into_iter().map(|count| point(count, &baseline)).collect(),
            },
        ],
    }
}

fn subagents(harness: &Harness) -> Curve {
    let head: Arc<[u8]> = harness.head(Setup::default).into();
    let ours = |count: usize| {
        let endpoint = harness.model.endpoint(&Plan::Subagents { count });
        let start = Moment::now();
        harness.subject(&endpoint, Setup { prompt: PARENT, ..Setup::default() });
        let requests = endpoint.sent().len();
        assert_eq!(requests, count + 3, "each subagent sends one request, and the parent three");
        microseconds(start) / number(count)
    };
    let text = Plan::text();
    let baseline = |count: usize| {
        let run = || work_by_hand(harness.model.endpoint(&text), head.to_vec(), CallTimes::default());
        at_once(harness, count, run) / number(count)
    };
    let line = |name, side: &dyn Fn(usize) -> f64| Line {
        name,
        points: SUBAGENTS
            .into_iter()
            .map(|count| (number(count), median((0..REPEATS).map(|_| side(count)))))
            .collect(),
    };
    Curve {
        file: "growth-subagents",
        title: "CPU of a session with subagents of one answer, by their number",
        x: "subagents",
        y: "µs of CPU each",
        lines: vec![line(OURS, &ours), line(BASELINE, &baseline)],
    }
}

/// Returns the CPU time of `count` concurrent tasks, in microseconds.
fn at_once<F: Future<Output = ()> + Send + 'static>(
    harness: &Harness,
    count: usize,
    work: impl Fn() -> F,
) -> f64 {
    let start = Moment::now();
    let mut all: tokio::task::JoinSet<()> = tokio::task::JoinSet::new();
    for _ in 0..count {
        all.spawn_on(work(), harness.runtime().handle());
    }
    harness.runtime().block_on(all.join_all());
    microseconds(start)
}

/// Returns the CPU time since then, in microseconds.
fn microseconds(start: Moment) -> f64 {
    milliseconds(start.until(Moment::now()).cpu) * 1_000.0
}

/// Returns the CPU time per round between two moments, in microseconds.
fn each(from: &Moment, to: &Moment, rounds: usize) -> Option<f64> {
    (rounds > 0).then(|| milliseconds(from.until(*to).cpu) * 1_000.0 / number(rounds))
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(values).map_or(f64::NAN, |spread| spread.median)
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
