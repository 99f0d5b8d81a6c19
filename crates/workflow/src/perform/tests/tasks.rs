//! Tasks that reach their goal, and such that cannot begin.

use serde_json::json;

use super::project::{Project, RIGHT, Scripted};
use crate::contract::{AnchorPlan, Pass, ReviewPlan};
use crate::report::Report;
use crate::task::{BlockedBy, Outcome};

#[tokio::test]
async fn the_right_candidate_is_chosen_in_every_order() {
    let project = Project::new().await;
    let wrong = "sed -i 's/abs(b)/-b/' src/sums.py";
    let cheat = "sed -i 's/== 2/!= 2/; s/== -4/!= -4/' tests/test_negative.py";
    for (number, order) in [[RIGHT, wrong, cheat], [wrong, cheat, RIGHT], [cheat, RIGHT, wrong]].iter().enumerate() {
        let scripted = order.iter().enumerate().fold(Scripted::new(), |scripted, (index, script)| {
            scripted.with(&index.to_string(), script, None)
        });
        let (outcome, task) = project.run(project.contract(3).await, scripted).await;
        let Outcome::Done(done) = outcome else {
            panic!("{number}: {}", Report::of(&task).to_markdown());
        };
        assert_eq!(order[done.candidate()], RIGHT, "{number}");
        assert_eq!(done.proof().diff().lines(), 2);
        assert_eq!(task.spent().tokens, 40, "losers and the anchor count");
        let anchor = done.proof().anchor().unwrap();
        assert!(anchor.tests().contains("test_negative.test_negative"), "{anchor:?}");
        assert_eq!(anchor.control(), Some("tests/test_negative.py"));
    }
    assert_eq!(project.sh("git status --porcelain; git branch").await, "* main\n", "the user's repository is as it was");
}
