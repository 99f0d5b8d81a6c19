export {
  PintleClient,
  type Approval,
  type AuditFormat,
  type ByteRange,
  type CallOptions,
  type ChangeOptions,
  type Checkpoint,
  type CostReport,
  type Decision,
  type Diff,
  type DiffQuery,
  type ExportFormat,
  type FileDiff,
  type GateDecision,
  type ListQuery,
  type Model,
  type NewSession,
  type Restore,
  type RestoreReport,
  type Session,
  type SessionList,
  type SettingsChange,
  type Task,
  type TaskDetail,
  type TaskList,
  type TaskListQuery,
  type TaskSteer,
  type Tool,
  type Turn,
  type UserMessage,
} from "./client.js";
export { PintleError, type Problem } from "./error.js";
export type {
  ChangeItem,
  DeltaEvent,
  EventOf,
  GapEvent,
  RecordedEvent,
  SessionEvent,
  SessionItem,
} from "./events.js";
export type { JournalLine, JournalRange } from "./journal.js";
export type { SegmentText } from "./segments.js";
export type { Reconnect, StreamOptions } from "./subscription.js";
export type { TaskInput, TaskItem, TaskStep } from "./tasks.js";
export type { Backoff } from "./time.js";
export type { ClientOptions } from "./transport.js";
