// Generated from crates/agent/schema/events.json by `npm run generate`. Do not edit.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * SessionEvent
         * @description Event of a session.
         *
         *     Serialised as the specification's record with `kind`, `timestamp`, `session_id` and `data`, plus `seq`.
         */
        SessionEvent: {
            /**
             * Format: uint32
             * @description Nesting depth: 0 for a session that the embedding application built, 1 for its subagents.
             */
            depth?: number;
            /**
             * Format: uint64
             * @description Offset of a delta in its segment, in bytes; `None` for all other events.
             */
            offset?: number | null;
            /** @description Id of the session that spawned this one. */
            parent?: components["schemas"]["SessionId"];
            /**
             * Format: uint64
             * @description Sequence number, counting up from 0 without gaps within a session. A delta has the number of its start event.
             */
            seq: number;
            /** @description Id of the session. */
            session_id: components["schemas"]["SessionId"];
            /**
             * Format: date-time
             * @description Time: RFC 3339 in UTC, to the millisecond.
             */
            timestamp: string;
        } & ({
            data: {
                /** @description Origin of the history, if the session is a fork. */
                forked_from?: components["schemas"]["ForkedFrom"] | null;
                /** @description Model. */
                model: string;
                /** @description Provider that requests are sent to. */
                provider: string;
                /** @description Working directory of the tools. */
                working_directory: string;
            };
            /** @constant */
            kind: "SESSION_START";
        } | {
            data: {
                /** @description Calls that had started and are not repeated, since their effect is unknown. Their end events follow. */
                interrupted?: string[];
                /**
                 * @description Calls that had declared their changes of files. If the files show that a call is done or in conflict, its end
                 *     event follows. Otherwise it runs again.
                 */
                reconciled?: string[];
                /** @description Calls that had started and are safe to repeat. Each has one start event and one end event. */
                repeated?: string[];
            };
            /** @constant */
            kind: "SESSION_RESUMED";
        } | {
            data: {
                /** @description Final state, always closed. Required by the specification. */
                state: components["schemas"]["SessionState"];
            };
            /** @constant */
            kind: "SESSION_END";
        } | {
            data: {
                /** @description Author, if the application names one, such as the name of a token. */
                author?: components["schemas"]["Principal"] | null;
                /** @description Text. */
                content: string;
                /** @description Images that the model gets with the text. */
                images?: components["schemas"]["ImageSummary"][];
            };
            /** @constant */
            kind: "USER_INPUT";
        } | {
            data: {
                /** @description How the run ended. Versions that do not report it leave it out. */
                outcome?: components["schemas"]["OutcomeStatus"];
                /** @description State of the session. */
                state: components["schemas"]["SessionState"];
            };
            /** @constant */
            kind: "PROCESSING_END";
        } | {
            data: components["schemas"]["LoadedProject"];
            /** @constant */
            kind: "PROJECT_LOADED";
        } | {
            data: {
                /** @description Hash of everything that a provider may cache. */
                fingerprint: string;
                /**
                 * Format: uint
                 * @description Number of messages, including the system prompt.
                 */
                messages: number;
                /** @description First segment that differs from the previous request, which explains a cache miss. */
                moved?: components["schemas"]["Segment"];
            };
            /** @constant */
            kind: "REQUEST_PREPARED";
        } | {
            data: Record<string, never>;
            /** @constant */
            kind: "ASSISTANT_TEXT_START";
        } | {
            data: {
                /** @description Text. */
                delta: string;
            };
            /** @constant */
            kind: "ASSISTANT_TEXT_DELTA";
        } | {
            data: {
                /**
                 * @description Whether the stream failed or was stopped here.
                 * @default false
                 */
                interrupted: boolean;
                /** @description Complete text of the segment. */
                text: string;
            };
            /** @constant */
            kind: "ASSISTANT_TEXT_END";
        } | {
            data: Record<string, never>;
            /** @constant */
            kind: "REASONING_START";
        } | {
            data: {
                /** @description Text. */
                delta: string;
            };
            /** @constant */
            kind: "REASONING_DELTA";
        } | {
            data: {
                /**
                 * @description Whether the stream failed or was stopped here.
                 * @default false
                 */
                interrupted: boolean;
                /** @description Complete readable text of the segment. */
                text: string;
            };
            /** @constant */
            kind: "REASONING_END";
        } | {
            data: {
                /** @description The model's id of the call. */
                call_id: string;
                /**
                 * @description Kind of the call.
                 * @default other
                 */
                call_kind: components["schemas"]["CallKind"];
                /** @description Name of the tool. */
                tool_name: string;
            };
            /** @constant */
            kind: "TOOL_CALL_ARGUMENTS_START";
        } | {
            data: {
                /** @description The model's id of the call. */
                call_id: string;
                /** @description Text, as the model wrote it. */
                delta: string;
            };
            /** @constant */
            kind: "TOOL_CALL_ARGUMENTS_DELTA";
        } | {
            data: {
                /** @description The model's id of the call. */
                call_id: string;
                /**
                 * @description Whether the stream failed or was stopped here.
                 * @default false
                 */
                interrupted: boolean;
            };
            /** @constant */
            kind: "TOOL_CALL_ARGUMENTS_END";
        } | {
            data: {
                /** @description Reason why the model stopped. */
                finish_reason: components["schemas"]["FinishReason"];
                /** @description Model that responded. */
                model: string;
                /** @description The provider's id of the response. */
                response_id: string;
                /** @description Tokens of this call. */
                usage: components["schemas"]["Usage"];
            };
            /** @constant */
            kind: "MODEL_RESPONSE";
        } | {
            data: {
                /** @description Id of the call. */
                call_id: string;
                /** @description Repairs. */
                repairs: components["schemas"]["ArgumentRepair"][];
                /** @description Name of the tool. */
                tool_name: string;
            };
            /** @constant */
            kind: "TOOL_CALL_REPAIRED";
        } | {
            data: {
                /** @description Id of the call. */
                call_id: string;
                /** @description Arguments that the call would run with, if they were changed. */
                changed?: components["schemas"]["ChangedArguments"] | null;
                /** @description The strictest verdict. */
                permission: components["schemas"]["Permission"];
                /** @description Verdict of each gate that was asked, with the rule that decided. The chain ends at the first denial. */
                steps: components["schemas"]["Judgement"];
                /** @description Name of the tool. */
                tool_name: string;
            };
            /** @constant */
            kind: "CALL_JUDGED";
        } | {
            data: {
                /** @description Arguments. */
                arguments: unknown;
                /** @description Id of the call. */
                call_id: string;
                /**
                 * @description Kind of the call.
                 * @default other
                 */
                call_kind: components["schemas"]["CallKind"];
                /** @description Name of the tool. */
                tool_name: string;
            };
            /** @constant */
            kind: "TOOL_CALL_START";
        } | {
            data: {
                /** @description Id of the call. */
                call_id: string;
                /** @description Text; bytes that are not UTF-8 are replaced. */
                delta: string;
            };
            /** @constant */
            kind: "TOOL_CALL_OUTPUT_DELTA";
        } | {
            data: {
                /** @description Id of the call. */
                call_id: string;
                /** @description Files that the call changed. */
                changes?: components["schemas"]["FileChange"][];
                /**
                 * Format: uint64
                 * @description Duration in milliseconds.
                 */
                duration_ms: number;
                /** @description Kind of failure, if the call failed. */
                error?: components["schemas"]["ToolErrorKind"];
                /**
                 * Format: int32
                 * @description Exit code of a command that exited. A non-zero one is a result and not a failure.
                 */
                exit_code?: number | null;
                /** @description Images that the model gets with the output. */
                images?: components["schemas"]["ImageSummary"][];
                /** @description Complete output; the model may get less. */
                output: string | {
                    /** @description Size of the kept output. */
                    bytes: number;
                    /** @description Bytes that were discarded for lack of space. */
                    dropped: number;
                    head: string;
                    spooled: boolean;
                    tail: string;
                };
                /**
                 * Format: uint64
                 * @description Time limit that a command exceeded, in milliseconds, if it did.
                 */
                timeout_ms?: number | null;
                /** @description Name of the tool. */
                tool_name: string;
            };
            /** @constant */
            kind: "TOOL_CALL_END";
        } | {
            data: {
                /** @description Arguments that it would run with. */
                arguments: unknown;
                /** @description Id of the call. */
                call_id: string;
                /**
                 * @description Kind of the call.
                 * @default other
                 */
                call_kind: components["schemas"]["CallKind"];
                /** @description Identifies this call with exactly these arguments. A decision applies to it alone, and once. */
                fingerprint: string;
                /** @description Why approval is needed. */
                reason: string;
                /** @description Side of the sandbox on which the command would run; missing without a sandbox and for other calls. */
                sandbox?: components["schemas"]["SandboxSide"] | null;
                /** @description Name of the tool. */
                tool_name: string;
            };
            /** @constant */
            kind: "APPROVAL_REQUESTED";
        } | {
            data: {
                /** @description Whether it may run. */
                approved: boolean;
                /** @description Principal that decided, if known. */
                by?: components["schemas"]["Principal"] | null;
                /** @description Id of the call. */
                call_id: string;
                /** @description How the request ended. */
                ending?: components["schemas"]["ApprovalEnding"] | null;
                /** @description Reason of a denial, for the model. */
                reason?: string | null;
            };
            /** @constant */
            kind: "APPROVAL_DECIDED";
        } | {
            data: components["schemas"]["PolicyChange"];
            /** @constant */
            kind: "POLICY_CHANGED";
        } | {
            data: {
                /** @description The checkpoint. */
                checkpoint: components["schemas"]["Checkpoint"];
                /** @description Why. */
                reason: components["schemas"]["CheckpointReason"];
                /**
                 * Format: uint
                 * @description Number of entries of the history at that time.
                 */
                turns: number;
            };
            /** @constant */
            kind: "CHECKPOINT_TAKEN";
        } | {
            data: {
                /**
                 * Format: uint
                 * @description Number of entries that are left.
                 */
                turns: number;
            };
            /** @constant */
            kind: "REWOUND";
        } | {
            data: {
                /** @description Whether the decision approved the call. */
                approved: boolean;
                /** @description Id of the call. */
                call_id: string;
                /** @description Why it does not apply. */
                reason: string;
            };
            /** @constant */
            kind: "APPROVAL_LATE";
        } | {
            data: {
                /** @description Author, if the application names one, such as the name of a token. */
                author?: components["schemas"]["Principal"] | null;
                /** @description Text. */
                content: string;
                /** @description Images that the model gets with the text. */
                images?: components["schemas"]["ImageSummary"][];
            };
            /** @constant */
            kind: "STEERING_INJECTED";
        } | {
            data: {
                /** @description Name among the subagents of this session. */
                agent_id: string;
                /** @description Id of its session. */
                child: components["schemas"]["SessionId"];
                /** @description Task. */
                task: string;
            };
            /** @constant */
            kind: "SUBAGENT_SPAWNED";
        } | {
            data: {
                /** @description Name among the subagents of this session. */
                agent_id: string;
                /** @description Id of its session. */
                child: components["schemas"]["SessionId"];
                /** @description Result of its last message; failed if it was closed while it worked. */
                status: components["schemas"]["SubagentStatus"];
                /**
                 * Format: uint64
                 * @description Number of its assistant turns.
                 */
                turns_used: number;
            };
            /** @constant */
            kind: "SUBAGENT_ENDED";
        } | {
            data: {
                /**
                 * Format: uint64
                 * @description Tool rounds of this input, if that limit was reached.
                 */
                round?: number | null;
                /**
                 * Format: uint64
                 * @description Assistant turns of the session, if that limit was reached.
                 */
                total_turns?: number | null;
            };
            /** @constant */
            kind: "TURN_LIMIT";
        } | {
            data: {
                /** @description The limit; its name includes the unit. */
                budget: components["schemas"]["BudgetKind"];
                /**
                 * Format: uint64
                 * @description Its value.
                 */
                limit: number;
                /**
                 * Format: uint64
                 * @description Minimum that the next call needs, if less is left.
                 */
                needed?: number | null;
                /** @description Scope of the limit; the session if it is missing. */
                scope?: components["schemas"]["BudgetScope"];
                /**
                 * Format: uint64
                 * @description Amount spent by this session and its subagents, or reserved for them.
                 */
                spent: number;
            };
            /** @constant */
            kind: "BUDGET_REACHED";
        } | {
            data: {
                /**
                 * Format: uint64
                 * @description Context window, in tokens.
                 */
                context_window: number;
                /**
                 * Format: uint64
                 * @description Lower bound of its size, in tokens.
                 */
                least_tokens: number;
            };
            /** @constant */
            kind: "CONTEXT_FULL";
        } | {
            data: {
                /**
                 * Format: uint64
                 * @description Of these, the conversation.
                 */
                history: number;
                /**
                 * Format: uint64
                 * @description Of these, the system prompt.
                 */
                system: number;
                /**
                 * Format: uint64
                 * @description Of these, the tools.
                 */
                tools: number;
                /**
                 * Format: uint64
                 * @description Tokens of the next request.
                 */
                used: number;
                /**
                 * Format: uint64
                 * @description Context window, in tokens.
                 */
                window: number;
            };
            /** @constant */
            kind: "CONTEXT_USAGE";
        } | {
            data: {
                /**
                 * Format: uint64
                 * @description Number of entries of the history that it will cover.
                 */
                through: number;
            };
            /** @constant */
            kind: "COMPACTION_START";
        } | {
            data: {
                /**
                 * Format: uint64
                 * @description Number of entries that the previous summary covered. Later entries are newly summarized.
                 * @default 0
                 */
                from: number;
                /**
                 * Format: uint64
                 * @description Number of entries of the history that it covers.
                 */
                through: number;
                /**
                 * Format: uint64
                 * @description Estimated size with it.
                 */
                tokens_after: number;
                /**
                 * Format: uint64
                 * @description Estimated size of the next request without it, in tokens.
                 */
                tokens_before: number;
                /** @description Tokens of the call that wrote it. */
                usage: components["schemas"]["Usage"];
            };
            /** @constant */
            kind: "COMPACTION_END";
        } | {
            data: {
                /** @description Message to the model. */
                message: string;
            };
            /** @constant */
            kind: "LOOP_DETECTION";
        } | {
            data: {
                /** @description Change and its reason. */
                message: string;
            };
            /** @constant */
            kind: "HISTORY_REPAIRED";
        } | {
            data: {
                /** @description Message for the user. */
                message: string;
            };
            /** @constant */
            kind: "WARNING";
        } | {
            data: {
                /**
                 * Format: uint32
                 * @description Number of the retry, from 1.
                 */
                attempt: number;
                /**
                 * Format: uint64
                 * @description Delay before it, in milliseconds.
                 */
                delay_ms: number;
                /** @description Error of the failed attempt. */
                error: components["schemas"]["ErrorInfo"];
            };
            /** @constant */
            kind: "MODEL_RETRYING";
        } | {
            data: {
                /** @description The error. */
                error: components["schemas"]["ErrorInfo"];
            };
            /** @constant */
            kind: "ERROR";
        } | {
            data: {
                /**
                 * Format: uint64
                 * @description Number of skipped bytes.
                 */
                skipped: number;
            };
            /** @constant */
            kind: "GAP";
        });
        /** @description How a request for approval ended. Until then it is pending. */
        ApprovalEnding: "allowed" | "denied" | "expired" | "cancelled" | "superseded";
        /** @description One repair of the arguments of a call. */
        ArgumentRepair: {
            /** @description The path of the argument, with dots between the names; empty for the arguments as a whole. */
            argument: string;
            /** @description The kind of repair. */
            kind: components["schemas"]["RepairKind"];
        };
        /** @description Quantity that a budget limits. */
        BudgetKind: "tokens" | "cost_micros" | "wall_time_ms" | "tool_calls";
        /** @description Scope of a budget limit. */
        BudgetScope: "session" | "run" | "day";
        /**
         * @description Kind of a tool call, by which a user interface can choose how to draw it. The names of tools differ between toolsets;
         *     the kinds do not.
         */
        CallKind: "read" | "edit" | "search" | "command" | "fetch" | "agent" | "other";
        /** @description The kind of a change to a file. */
        ChangeKind: "added" | "modified" | "deleted" | {
            renamed: {
                /** @description The previous name. */
                from: string;
            };
        };
        /** @description Arguments of a call that were changed before it ran. */
        ChangedArguments: {
            /** @description The arguments that it runs with. */
            arguments: unknown;
            /** @description Principal that changed them, if known. */
            by?: components["schemas"]["Principal"] | null;
        };
        /** @description State of all files of a workspace at one moment, kept outside the session. */
        Checkpoint: {
            /**
             * Format: uint64
             * @description Number of files, directories and links that it contains.
             */
            entries: number;
            /** @description Id. */
            id: string;
            /** @description Description of the missing parts; `None` if it is complete. */
            partial?: string | null;
        };
        /** @description Why a checkpoint was taken. */
        CheckpointReason: "before_call" | "after_call" | "before_rewind" | "after_rewind";
        /** @description The data of an error without its source, for journals and events. */
        ErrorInfo: {
            /** @description Messages of the causes, nearest first. */
            causes?: string[];
            /** @description The provider's code for the error. */
            error_code?: string | null;
            /** @description Kind of failure. */
            kind: components["schemas"]["ErrorKind"];
            /** @description Message for people; contains no secret. */
            message: string;
            /** @description Provider that responded, if any. */
            provider?: string | null;
            /** @description The provider's error body, bounded in size. */
            raw?: unknown;
            /** @description Fingerprint of the image, audio or document that the provider named as the reason. */
            refused_media?: string | null;
            /** @description Whether the provider refused the reasoning of earlier responses that the request contained. */
            refused_reasoning?: boolean;
            /** @description The provider's id for the request, for support. */
            request_id?: string | null;
            /** @description The provider's id of the response, if a complete response was unusable. */
            response_id?: string | null;
            /** @description Whether and when to retry. */
            retry: components["schemas"]["Retry"];
            /**
             * Format: uint16
             * @description HTTP status, if there was an HTTP response.
             */
            status?: number | null;
            /** @description Tokens spent by the failed operation, if known. */
            usage?: components["schemas"]["Usage"] | null;
        };
        /**
         * @description Kind of failure, in the terms of the client specification (section 6.1).
         *
         *     The kind says what happened. Whether a retry may help is a separate fact.
         */
        ErrorKind: "authentication" | "access_denied" | "not_found" | "invalid_request" | "rate_limit" | "server" | "content_filter" | "context_length" | "quota_exceeded" | "request_timeout" | "abort" | "network" | "stream" | "invalid_tool_call" | "unsupported_tool_choice" | "no_object_generated" | "configuration";
        /** @description One file that a call changed. */
        FileChange: {
            /** @description A unified diff; empty if there is no text to show. */
            diff: string;
            /** @description The kind of change. */
            kind: components["schemas"]["ChangeKind"];
            /** @description The path as the call named it. */
            path: string;
        };
        /** @description Unified finish reason (section 3.8). Exhaustive: `Other` covers the reasons of individual providers. */
        Finish: "stop" | "length" | "tool_calls" | "content_filter" | "error" | "other";
        /** @description Finish reason, unified and in the spelling of the provider. */
        FinishReason: {
            /** @description The provider's spelling. */
            raw?: string | null;
            /** @description Unified reason. */
            reason: components["schemas"]["Finish"];
        };
        /** @description Origin of the history of a fork. */
        ForkedFrom: {
            /** @description Id of the forked session. */
            session_id: components["schemas"]["SessionId"];
            /**
             * Format: uint
             * @description Number of history entries that the fork inherited.
             */
            turns: number;
        };
        /** @description Media type and size of an image. */
        ImageSummary: {
            /**
             * Format: uint64
             * @description Size in bytes; `None` for an image that is fetched or read later.
             */
            bytes?: number;
            /** @description Media type, if known. */
            media_type?: string;
        };
        /** @description The judgement of a chain of gates about one call, with the verdict of each gate that was asked. */
        Judgement: components["schemas"]["JudgementStep"][];
        /** @description One step of a judgement, for the record: the verdict of one gate. */
        JudgementStep: {
            /** @description Whether it answers questions that were asked only because nothing named the call. */
            answers?: boolean;
            /** @description Whether decisions on the call are bound to the rule. */
            binds?: boolean;
            /** @description Whether nothing named the call, so that this is only what happens to all others. */
            by_default?: boolean;
            /** @description Name of the gate, such as `grant` or `rules`. */
            gate: string;
            /** @description Its verdict. */
            permission: components["schemas"]["Permission"];
            /** @description Reason of a question or a denial. */
            reason?: string;
            /** @description What decided: a rule, a grant, a mode. */
            rule?: string | null;
            /** @description Rules that together name exactly calls like this one, if a person is asked. */
            suggested_rules?: string[];
        };
        /** @description A project document in a prompt. */
        LoadedDocument: {
            /**
             * Format: uint
             * @description Size of its text in the prompt, in bytes.
             */
            bytes: number;
            /** @description Absolute path. */
            path: string;
            /** @description Whether the file is longer. */
            truncated: boolean;
        };
        /** @description Project documents and skills in a prompt, without their texts. */
        LoadedProject: {
            /**
             * @description Documents, the root's first.
             * @default []
             */
            documents: components["schemas"]["LoadedDocument"][];
            /**
             * @description Skills that the prompt lists, sorted by name.
             * @default []
             */
            skills: components["schemas"]["Skill"][];
            /**
             * @description Files that exist and could not be used.
             * @default []
             */
            skipped: components["schemas"]["SkippedFile"][];
        };
        /** @description How a run ended. */
        OutcomeStatus: "completed" | "awaiting_input" | "refused" | "round_limit" | "turn_limit" | "budget" | "context_full" | "output_limit" | "interrupted" | "aborted" | "failed";
        /** @description The action of a rule on the calls that it matches. */
        Permission: "allow" | "ask" | "deny";
        /**
         * @description Change of a session's permissions, made by the layer that judges its calls. The session does not judge calls. It records
         *     the change, which explains later verdicts.
         */
        PolicyChange: {
            /** @description Principal that made the change. */
            by?: components["schemas"]["Principal"] | null;
            /** @description The grant, complete. */
            grant?: unknown;
            /** @description Mode for calls that no rule names. */
            mode?: string | null;
            /** @description Rules that were added. */
            rules?: components["schemas"]["PolicyRule"][];
            /** @description Level of the sandbox in which commands run. */
            sandbox?: string | null;
        };
        /** @description Rule that was added. */
        PolicyRule: {
            /** @description Verdict for the calls that it names. */
            permission: components["schemas"]["Permission"];
            /** @description The rule, as it was written. */
            rule: string;
            /** @description Origin, such as a file with a line, an option or an approval. */
            source: string;
        };
        /** @description Author of an action, as the application names them, such as `jan@workstation`. */
        Principal: string;
        /** @description The kind of a repair. */
        RepairKind: "number_from_text" | "boolean_from_text" | "json_from_text" | "integer_from_fraction" | "null_left_out" | {
            renamed: {
                /** @description The other name. */
                from: string;
            };
        };
        /**
         * @description Whether and when to retry. Exhaustive: callers handle both cases.
         *
         *     Serialised as `"never"` or as `{"after_ms": …}` in milliseconds, `null` without a delay. Records of earlier versions
         *     (`{"after": {"secs": …, "nanos": …}}`) can still be read.
         */
        Retry: "never" | {
            /** Format: uint64 */
            after_ms: number | null;
        };
        /** @description Where a command runs in an environment that has a sandbox. */
        SandboxSide: "inside" | "outside";
        /** @description Segment of the prompt, for prompt caches. */
        Segment: "tools" | "system" | {
            /** Format: uint */
            message: number;
        };
        /** @description Id of a session: a UUID of version 7 unless the embedding application chose another text. */
        SessionId: string;
        /** @description State of a session (loop specification, section 2.3). */
        SessionState: "IDLE" | "PROCESSING" | "AWAITING_INPUT" | "CLOSED";
        /** @description One skill. */
        Skill: {
            /** @description Description: one line of at most 1,024 characters. */
            description: string;
            /** @description Name: at most 64 letters, digits, `-` and `_`. */
            name: string;
            /** @description Absolute path of its `SKILL.md`. Bytes that are not UTF-8 are replaced. */
            path: string;
        };
        /** @description A document, a skill or a directory of skills that exists and could not be used. */
        SkippedFile: {
            /** @description Absolute path. Bytes that are not UTF-8 are replaced. */
            path: string;
            /** @description Reason, for a person to read. */
            reason: string;
        };
        /** @description State of a subagent (loop specification, section 7.3). */
        SubagentStatus: "RUNNING" | "COMPLETED" | "FAILED";
        /** @description The kind of a failed call (loop specification, appendix B). */
        ToolErrorKind: "unknown_tool" | "invalid_arguments" | "denied" | "not_found" | "permission_denied" | "edit_conflict" | "cancelled" | "timed_out" | "environment_lost" | "failed";
        /**
         * @description Token counts of a call, or the sum of several.
         *
         *     The counts have the same meaning for every provider: `input_tokens` is the complete input, including tokens read from
         *     or written to a cache. Adapters convert different counts.
         */
        Usage: {
            /**
             * Format: uint64
             * @description Input tokens read from a cache; part of the input. `None` if not reported.
             */
            cache_read_tokens?: number | null;
            /**
             * Format: uint64
             * @description Input tokens written to a cache; part of the input. `None` if not reported.
             */
            cache_write_tokens?: number | null;
            /**
             * Format: uint64
             * @description All input tokens, cached or not.
             */
            input_tokens: number;
            /**
             * Format: uint64
             * @description Output tokens.
             */
            output_tokens: number;
            /** @description The provider's record; dropped when counts are added. Copies share it: a history keeps the counts of every response. */
            raw?: unknown;
            /**
             * Format: uint64
             * @description Reasoning tokens; part of the output. An estimate for Anthropic.
             */
            reasoning_tokens?: number | null;
            /**
             * Format: uint64
             * @description The provider's total, or the sum of input and output.
             */
            total_tokens: number;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
