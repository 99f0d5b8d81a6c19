use super::*;

#[test]
fn only_failures_of_git_are_explained() {
    let failed = GitError::Failed { command: "rev-parse".to_owned(), message: String::new() };
    let not_run = GitError::Run(EnvError::not_found(Path::new("git")));
    for (error, is_explained) in [(failed, true), (not_run, false)] {
        let shown = error.to_string();
        let error = explain_failure(error, |_| RepositoryError::Unusable("no commit".to_owned()));
        assert_eq!(matches!(error, RepositoryError::Unusable(_)), is_explained, "{shown}");
        assert_eq!(matches!(error, RepositoryError::Git(GitError::Run(_))), !is_explained, "{shown}");
    }
}
