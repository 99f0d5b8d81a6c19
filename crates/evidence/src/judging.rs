//! Files that judge a change: tests and their data, settings of runners, continuous integration, lock files, and files
//! that a check names. A change must not alter them to pass its checks.

mod assess;
mod command_scan;
mod facts;
mod inline_tests;
mod manifest;
mod path_rules;
mod roles;
mod sources;
#[cfg(test)]
mod tests;

pub use self::assess::{ChangeAssessment, ChangedText};
pub use self::command_scan::CommandScan;
pub use self::facts::{JudgingFacts, JudgingList, JudgingPart};
pub use self::inline_tests::{find_module, module_parents};
pub(crate) use self::manifest::ManifestFormat;
pub use self::path_rules::{InvalidPattern, PathRules, TaskScope};
pub(crate) use self::roles::{FileRole, RoleTable};
pub use self::sources::{InstalledModules, files_beside_sources};
