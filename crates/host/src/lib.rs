#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod layers;
mod spec;

pub use layers::{
    Access, BoundedValue, Client, ClientScope, DefaultValue, FIELDS, FieldRow, HttpField, Kept, KeptSpec,
    Layer, LayerSpec, Origin, ProblemKind, Resolved, SpecProblem, UnreadableFlag, ValueKind, merge,
};
pub use spec::{
    BaseUrl, BudgetSpec, Combine, CountLimit, EnvironmentSpec, InstructionSpec, LimitSpec, ModelSpec,
    NetworkAccess, PartialEnvironment, PartialInstructions, PartialLimits, PartialModel, PartialPersistence,
    PartialPolicy, PartialSpec, PartialTools, PersistenceSpec, PolicySpec, ProfileRef, SandboxLevel,
    ServerDeclaration, SessionSpec, ToolSpec, UnknownName, WorktreeBase,
};
