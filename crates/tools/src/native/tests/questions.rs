use super::*;

fn options() -> Value {
    json!([{"label": "SQLite", "description": "One file."}, {"label": "Postgres", "description": " "}])
}

#[tokio::test]
async fn questions_are_shown_with_their_options() {
    let harness = Harness::new();
    let both = json!({"questions": [
        {"question": "Which database?", "header": "Database", "options": options()},
        {"question": "Which tables?", "header": "Tables", "options": options(), "multiSelect": true},
    ]});
    let execution = harness.execute(anthropic::AskUserQuestion::new(), &both.to_string()).await;
    insta::assert_snapshot!(execution.question.unwrap(), @"
    (1/2) Which database?
    1. SQLite: One file.
    2. Postgres

    (2/2) Which tables? (several may be chosen)
    1. SQLite: One file.
    2. Postgres
    ");
    insta::assert_snapshot!(text(&execution.result), @"The questions were put to the user. The answer comes as the next message of the user.");
    let one = json!({"questions": [
        {"id": "database", "question": "Which database?", "header": "Database", "options": options()},
    ]});
    let execution = harness.execute(openai::RequestUserInput::new(), &one.to_string()).await;
    insta::assert_snapshot!(execution.question.unwrap(), @"
    Which database?
    1. SQLite: One file.
    2. Postgres
    ");
    insta::assert_snapshot!(text(&execution.result), @"The question was put to the user. The answer comes as the next message of the user.");
}

#[tokio::test]
async fn unanswerable_questions_are_refused() {
    let harness = Harness::new();
    let ask = async |questions: Value| {
        let arguments = json!({"questions": questions}).to_string();
        harness.call(openai::RequestUserInput::new(), &arguments).await
    };
    let cases = [
        (json!([]), "questions is empty; give at least one"),
        (
            json!([{"id": "a", "header": "A", "question": " ", "options": options()}]),
            "question 1 has no text; say what the user should decide or tell",
        ),
        (
            json!([{"id": "a", "header": "A", "question": "a?", "options": [{"label": "", "description": "x"}]}]),
            "an option of question 1 has no label",
        ),
    ];
    for (questions, expected) in cases {
        assert_eq!(ask(questions).await, format!("error: Tool error (request_user_input): {expected}"));
    }
}
