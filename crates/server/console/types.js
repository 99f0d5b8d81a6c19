/**
 * Types of the interface and of the page. This module has no code.
 *
 * @typedef {"IDLE"|"PROCESSING"|"AWAITING_INPUT"|"CLOSED"} Phase
 *
 * @typedef {object} Session
 * @property {string} id
 * @property {string} title
 * @property {string} created_at
 * @property {string} updated_at
 * @property {string} [parent]
 * @property {Phase} state
 * @property {boolean} live
 * @property {number} pending_approvals
 * @property {number} [queue_position] place among the sessions that wait for room
 * @property {number} [cost_usd]
 * @property {number} [tokens]
 * @property {string} [directory]
 * @property {string} [model]
 * @property {string} [mode]
 * @property {string} [effort]
 *
 * @typedef {object} Approval
 * @property {string} call_id
 * @property {string} fingerprint
 * @property {string} session
 * @property {string} tool_name
 * @property {unknown} arguments
 * @property {string} reason
 * @property {"inside"|"outside"} [sandbox]
 * @property {string[]} writes
 * @property {string[]} suggested_rules
 * @property {string} [diff]
 *
 * @typedef {{decision: "approve"} | {decision: "deny", reason?: string} | {decision: "change", arguments: unknown}} Decision
 *
 * @typedef {object} HistoryTurn
 * @property {number} index
 * @property {string} kind
 * @property {string} text
 * @property {number} event sequence number of the event that belongs to the entry
 *
 * @typedef {{id: string, at: string, reason: string, partial?: string}} Checkpoint
 * @typedef {{files: {path: string, action: string}[], changed_by_others: string[], left_alone: {path: string, reason: string}[], undo?: string, problems: string[]}} RestoreReport
 * @typedef {{id: string, context_window: number}} Model
 * @typedef {{data: string, media_type: string}} ImageData
 * @typedef {{text: string, images?: ImageData[]}} Message
 *
 * @typedef {object} Event one event of a session, see docs/reference/events.md
 * @property {number} seq
 * @property {number|null} [offset]
 * @property {string} timestamp
 * @property {string} session_id
 * @property {number} [depth]
 * @property {string} [parent]
 * @property {string} kind
 * @property {Record<string, any>} data
 *
 * @typedef {object} Usage
 * @property {number} input
 * @property {number} output
 * @property {number} cacheRead
 * @property {number} cacheWrite
 * @property {number} reasoning
 *
 * @typedef {{media_type?: string, bytes?: number|null, hash?: string}} Image
 * @typedef {{spooled: true, bytes: number, dropped?: number, head: string, tail: string}} SpooledOutput
 * @typedef {{path: string, kind: string, from: string|null, diff: string}} FileChange
 * @typedef {{step: string, status: "pending"|"in_progress"|"completed"}} PlanStep
 *
 * @typedef {object} EntryBase
 * @property {number} seq number of the event that began the entry; it identifies the entry
 * @property {number} lastSeq number of the last event that belongs to the entry
 * @property {number} at milliseconds since 1970
 * @property {number} revision counts the changes of the entry
 *
 * @typedef {EntryBase & {type: "input", text: string, images: Image[], steering: boolean, author: string|null}} InputEntry
 * @typedef {EntryBase & {type: "text"|"reasoning", text: string, open: boolean, interrupted: boolean, round: RoundEntry|null}} TextEntry
 *
 * @typedef {object} RoundFields
 * @property {"round"} type
 * @property {number} messages
 * @property {string|null} moved first part of the request that changed
 * @property {string|null} model
 * @property {string|null} finish
 * @property {Usage|null} usage
 * @property {number|null} endedAt
 * @property {"waiting"|"done"|"failed"} status
 * @property {string|null} purpose
 * @typedef {EntryBase & RoundFields} RoundEntry
 *
 * @typedef {"writing"|"written"|"asking"|"running"|"done"|"failed"|"denied"|"cut"} CallStatus
 *
 * @typedef {object} CallFields
 * @property {"call"} type
 * @property {string} callId
 * @property {string} tool
 * @property {string} kind
 * @property {CallStatus} status
 * @property {string} argumentText
 * @property {any} arguments
 * @property {string} output
 * @property {SpooledOutput|null} spooled
 * @property {string|null} error
 * @property {number|null} exitCode
 * @property {number|null} timeoutMs
 * @property {number|null} startedAt
 * @property {number|null} durationMs
 * @property {FileChange[]} changes
 * @property {Image[]} images
 * @property {PlanStep[]|null} plan
 * @property {string[]} remarks repairs, verdicts and decisions, in words
 * @typedef {EntryBase & CallFields} CallEntry
 *
 * @typedef {EntryBase & {type: "agent", agentId: string, child: string, task: string, status: string, endedAt: number|null, turns: number|null}} AgentEntry
 * @typedef {EntryBase & {type: "notice", level: "info"|"warning"|"error", quiet: boolean, title: string, text: string, detail: any}} NoticeEntry
 * @typedef {EntryBase & {type: "end", state: string, outcome: string|null, startedAt: number|null, calls: number, usage: Usage}} EndEntry
 *
 * @typedef {InputEntry|TextEntry|RoundEntry|CallEntry|AgentEntry|NoticeEntry|EndEntry} Entry
 *
 * @typedef {object} Segment an open segment of deltas
 * @property {Entry} entry
 * @property {"text"|"argumentText"|"output"} field
 * @property {number} bytes UTF-8 length of what has arrived
 *
 * @typedef {object} SessionState
 * @property {string} sessionId
 * @property {number} lastSeq
 * @property {number} revision
 * @property {Phase} phase
 * @property {string} provider
 * @property {string} model
 * @property {string} directory
 * @property {string|null} mode
 * @property {{session: string, turns: number}|null} forkedFrom
 * @property {Entry[]} entries
 * @property {Map<string, CallEntry>} calls
 * @property {Map<number, Segment>} segments
 * @property {Map<string, AgentEntry>} agents
 * @property {Set<string>} asking ids of the calls that wait for a decision
 * @property {RoundEntry|null} round
 * @property {PlanStep[]|null} plan
 * @property {number[]} rewinds numbers of the rewinds
 * @property {Usage} usage
 * @property {number} rounds
 * @property {number} misses
 * @property {number} lastUsed tokens of the last request and its response
 * @property {{window: number, used: number, system: number, tools: number, history: number}|null} context
 * @property {{at: number, calls: number, usage: Usage}|null} run
 * @property {number} startedAt
 * @property {number} lastAt
 */
export {};
