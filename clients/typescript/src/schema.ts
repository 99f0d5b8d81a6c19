// Generated from crates/server/openapi.json by `npm run generate`. Do not edit.

export interface paths {
    "/v1/costs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Add up the cost of all sessions by day and model */
        get: operations["readCosts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Follow the changes of all sessions */
        get: operations["followSessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Return whether the server answers */
        get: operations["readHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Exchange a token for a cookie */
        post: operations["logIn"];
        /** End the login of a cookie */
        delete: operations["logOut"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read measurements of the server, in the text format of Prometheus */
        get: operations["readMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List models that sessions can use */
        get: operations["listModels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Return whether it takes requests */
        get: operations["readReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List sessions, the newest change first */
        get: operations["listSessions"];
        put?: never;
        /** Create a session */
        post: operations["createSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a session */
        get: operations["readSession"];
        put?: never;
        post?: never;
        /** Delete a session with its record */
        delete: operations["deleteSession"];
        options?: never;
        head?: never;
        /** Change the settings of a session */
        patch: operations["changeSession"];
        trace?: never;
    };
    "/v1/sessions/{id}/abort": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stop everything and end the session for good */
        post: operations["abort"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/approvals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the calls that wait for a decision, in the session and in its subagents */
        get: operations["listApprovals"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/approvals/{call_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Decide on a call; only the first decision counts */
        post: operations["decide"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the requester, the approver and the effects of each call, with the record verified */
        get: operations["auditSession"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/blobs/{hash}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a large value of the journal, or a range of its bytes */
        get: operations["readBlob"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/checkpoints": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the states of the files that can be restored */
        get: operations["listCheckpoints"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/compact": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Summarise the older part of the conversation */
        post: operations["compact"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Compare the files with an earlier state */
        get: operations["diff"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Follow the events of a session from any point */
        get: operations["followSession"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the session as one document: its record, or its conversation */
        get: operations["exportSession"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/follow-up": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a message that waits for the end of the run */
        post: operations["followUp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/fork": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Create a session that begins with the history of another */
        post: operations["forkSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the conversation */
        get: operations["readHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/interrupt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stop the run and keep the session */
        post: operations["interrupt"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/journal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the lines of the journal, as JSON lines */
        get: operations["readJournal"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Restore files to an earlier state, or report the effects without applying them */
        post: operations["restore"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/rewind": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Go back in the conversation */
        post: operations["rewind"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/say": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a message into the current run, or start a run with it */
        post: operations["say"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/steer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a message into the current run; without a run, it is sent with the next message */
        post: operations["steer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/submit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send the next message; during a run, it waits for the end of the run */
        post: operations["submit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/tools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the tools that the model of a session is offered */
        get: operations["listTools"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/streams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Follow several sessions and tasks in one connection */
        get: operations["followStreams"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List tasks with evidence, the newest first */
        get: operations["listTasks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a task, with its report */
        get: operations["readTask"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stop everything and end the task for good */
        post: operations["cancelTask"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{id}/candidates/{candidate}/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the newest changes of a candidate as a patch, on top of the anchor */
        get: operations["diffCandidate"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{id}/decide": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Decide on the gate at which a task waits; only the first decision counts */
        post: operations["decideTask"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Follow the inputs of a task from any point, until it has ended */
        get: operations["followTask"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{id}/report": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the report about a task as text */
        get: operations["reportTask"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{id}/steer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Say something to one candidate of a task, or to all */
        post: operations["steerTask"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the name and the scopes of the token of this request */
        get: operations["readToken"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        ApprovalList: {
            approvals: components["schemas"]["ApprovalView"][];
        };
        /** @description A call that waits for a decision. */
        ApprovalView: {
            arguments: unknown;
            /** @description The model's id of the call. */
            call_id: string;
            /** @description Changes that it would make now, as a unified diff. */
            diff?: string | null;
            /** @description Fingerprint of the call, which a decision names. */
            fingerprint: string;
            /** @description Reason why a decision is needed. */
            reason: string;
            /** @description On which side of the sandbox the command would run. */
            sandbox?: string | null;
            /** @description Session that makes the call: a subagent, perhaps. */
            session: string;
            /** @description Rules that together name exactly calls like this one. */
            suggested_rules: string[];
            tool_name: string;
            /** @description Absolute paths of the files that it may change. */
            writes: string[];
        };
        /** @description End of a task. */
        CancelBody: {
            /** @description Reason, for the report. */
            reason?: string | null;
        };
        /** @description Settings to change. Those that are absent stay. */
        ChangeBody: {
            /** @description Reasoning effort, from the next request on. */
            effort?: string | null;
            /**
             * @description Treatment of calls that no rule names: `plan`, `ask`, `edit` or `auto`. A mode in which more calls run than now
             *     requires the scope `approve`.
             */
            mode?: string | null;
            /** @description Model, from the next request on. */
            model?: string | null;
        };
        /** @enum {string} */
        ChangeName: "added" | "removed" | "modified" | "mode_changed" | "type_changed" | "retargeted";
        CheckpointList: {
            checkpoints: components["schemas"]["CheckpointView"][];
        };
        /** @description State of the files when the checkpoint was taken. */
        CheckpointView: {
            /** @description Time, in RFC 3339. */
            at: string;
            /**
             * Format: uint64
             * @description Number of files, directories and links.
             */
            entries: number;
            /**
             * Format: uint64
             * @description Sequence number of the event that records the checkpoint.
             */
            event: number;
            id: string;
            /** @description Description of the missing parts; absent if the checkpoint is complete. */
            partial?: string | null;
            /** @description `before_call`, `after_call`, `before_rewind` or `after_rewind`. */
            reason: string;
            /**
             * Format: uint
             * @description Number of entries that the history had.
             */
            turns: number;
        };
        /** @description Cost by day and model. */
        CostReport: {
            /** @description Cost of each day and model that has any, the newest day first. */
            days: components["schemas"]["DayCost"][];
            /**
             * @description Whether all sessions of these days were read. Beyond 5,000 the oldest are left out, and always what follows the damage of
             *     a record.
             */
            is_complete: boolean;
            /**
             * Format: uint
             * @description Number of sessions with these days, including subagents and deleted sessions.
             */
            sessions: number;
            /** @description First day, in UTC. */
            since: string;
        };
        /** @description A session to create. */
        CreateBody: {
            /**
             * @description Working directory in the environment, absolute, in a directory where the server lets sessions work. Default:
             *     the directory of the server.
             */
            directory?: string | null;
            /** @description Reasoning effort: low, medium, high, or a provider-specific value. */
            effort?: string | null;
            /**
             * @description Execution environment: `local`, `docker:CONTAINER` or `ssh:[USER@]HOST[:PORT]`. Requires the scope `approve`.
             *     Default: the environment of the server.
             */
            environment?: string | null;
            /** @description Grant that no rule, mode or decision exceeds. */
            grant?: {
                [key: string]: unknown;
            } | null;
            /** @description First message. */
            message?: components["schemas"]["MessageBody"] | null;
            /**
             * @description Treatment of calls that no rule names: `plan`, `ask`, `edit` or `auto`. A mode in which more calls run than by
             *     default requires the scope `approve`.
             */
            mode?: string | null;
            /** @description Model name. Default: the model of the server. */
            model?: string | null;
            /** @description Rules for calls, in addition to the rules of the server's user and of the project. */
            rules?: components["schemas"]["NewRules"];
        };
        /** @description Cost of one model on one day. */
        DayCost: {
            /**
             * Format: uint64
             * @description Input tokens that were read from a cache.
             */
            cache_read_tokens: number;
            /**
             * Format: double
             * @description Cost in US dollars; absent if a price is unknown.
             */
            cost_usd?: number | null;
            /** @description Day, in UTC. */
            day: string;
            /**
             * Format: uint64
             * @description Input tokens, cached ones among them.
             */
            input_tokens: number;
            /** @description Model that responded. */
            model: string;
            /**
             * Format: uint64
             * @description Output tokens.
             */
            output_tokens: number;
            /**
             * Format: uint64
             * @description Number of responses.
             */
            responses: number;
        };
        /** @description A decision on a gate. */
        DecideBody: {
            /** @description The decision. */
            decision: components["schemas"]["GateDecision"];
            /** @description Gate that was seen. */
            gate: components["schemas"]["GateName"];
            /**
             * Format: uint64
             * @description Its place, as it was seen: a gate that was opened again since is another one.
             */
            place?: number | null;
            /** @description Required changes, with `refuse`; a refusal without words ends the task. An anchor that the contract names takes none. */
            words?: string | null;
        };
        /** @description A decision. */
        DecisionBody: {
            /**
             * @description Arguments that replace the arguments of the call. The changed call is judged as a new call, and also requires the
             *     scope `run`.
             */
            arguments?: {
                [key: string]: unknown;
            } | null;
            /** @description The decision. */
            decision: components["schemas"]["DecisionName"];
            /** @description Fingerprint of the call that was seen. */
            fingerprint: string;
            /** @description Words to a denial, which the model gets. */
            reason?: string | null;
        };
        DecisionName: "approve" | "deny" | "change";
        /** @description Changes of files. */
        DiffView: {
            /** @description Id of the checkpoint that they are compared with; absent if no call has changed anything since. */
            checkpoint?: string | null;
            files: components["schemas"]["FileView"][];
            /**
             * Format: uint
             * @description Number of changed files that are not listed because there are too many.
             */
            left_out: number;
            /** @description Paths about which nothing is known. */
            unknown: string[];
        };
        /** @description A file that a restore leaves as it is. */
        FileLeft: {
            /** @description Path, relative to the directory of the session. */
            path: string;
            /** @description Reason, for people. */
            reason: string;
        };
        /** @description A file that a restore changes. */
        FileStep: {
            /** @description `create`, `overwrite`, `remove`, `replace` or `set mode`. */
            action: string;
            /** @description Path, relative to the directory of the session. */
            path: string;
        };
        /** @description Changes of one file. */
        FileView: {
            change: components["schemas"]["ChangeName"];
            /** @description Changed lines with those around them. */
            hunks: components["schemas"]["HunkView"][];
            /** @description Reason why lines are not shown. */
            not_shown?: string | null;
            path: string;
        };
        /** @description Starting point of a fork. */
        ForkBody: {
            /**
             * Format: uint
             * @description Number of entries of the history that it takes over.
             */
            turns: number;
        };
        GateDecision: "approve" | "refuse";
        /** @description Point at which a task waits for a person. */
        GateName: "anchor" | "result";
        /** @description A gate that waits for a person. */
        GateView: {
            /**
             * Format: uint
             * @description Candidate that was chosen, at the gate of the result.
             */
            candidate?: number | null;
            /** @description Gate. */
            name: components["schemas"]["GateName"];
            /**
             * Format: uint64
             * @description Position in the journal at which the gate was opened. A decision with this position does not apply if the gate was
             *     opened again since.
             */
            place: number;
        };
        /** @description State of the server. */
        Health: {
            /** @description `ok`, `closing`, or `no store`. */
            status: string;
        };
        /** @description The conversation. */
        History: {
            /** @description Damage of the record, as text; absent if the record is complete. The entries are those before the damage. */
            damage?: string | null;
            turns: components["schemas"]["TurnView"][];
        };
        /** @description Changed lines that are near to one another. */
        HunkView: {
            lines: components["schemas"]["LineView"][];
            /**
             * Format: uint
             * @description Number of the first new line, from 1; of the preceding line if the hunk has no new lines.
             */
            new_start: number;
            /**
             * Format: uint
             * @description Number of the first old line, from 1; of the preceding line if the hunk has no old lines.
             */
            old_start: number;
        };
        /** @description An image, by its bytes. */
        ImageBody: {
            /** @description Bytes, in base64. */
            data: string;
            /** @description Media type, such as `image/png`. */
            media_type: string;
        };
        /** @enum {string} */
        LineKind: "context" | "add" | "remove";
        LineView: {
            kind: components["schemas"]["LineKind"];
            text: string;
        };
        /** @description Login of a page. */
        Login: {
            /** @description The token. */
            token: string;
        };
        /** @description A message. */
        MessageBody: {
            /** @description Images. */
            images?: components["schemas"]["ImageBody"][];
            /**
             * @description Text. May be empty if there are images.
             * @default
             */
            text?: string;
        };
        ModelList: {
            models: components["schemas"]["ModelSummary"][];
        };
        /** @description Model that a session can use. */
        ModelSummary: {
            /**
             * Format: uint64
             * @description Context window in tokens.
             */
            context_window: number;
            /** @description Id. */
            id: string;
        };
        /** @description Rules for the calls of a new session, as text. */
        NewRules: {
            /**
             * @description Rules for calls that need no decision. Requires the scope `approve`.
             * @default []
             */
            allow?: string[];
            /**
             * @description Rules for calls that do not run.
             * @default []
             */
            deny?: string[];
        };
        /** @description Reason why a request failed. */
        Problem: {
            /** @description Explanation for this request, with the expected value. */
            detail: string;
            /**
             * Format: uint16
             * @description HTTP status.
             */
            status: number;
            /** @description Short, human-readable summary of the kind. */
            title: string;
            /** @description Kind of the problem, the same for all of its kind. */
            type: string;
        };
        /** @description Restore of files. */
        RestoreBody: {
            /** @description Id of a checkpoint, instead. */
            checkpoint?: string | null;
            /**
             * @description Whether the conversation goes back to `turns` as well.
             * @default false
             */
            conversation?: boolean;
            /**
             * @description Whether to report the effects without applying them.
             * @default false
             */
            dry_run?: boolean;
            /**
             * @description Whether to restore files that another user or process may have changed.
             * @default false
             */
            force?: boolean;
            /**
             * Format: uint
             * @description Number of entries of the history before the changes that are undone.
             */
            turns?: number | null;
        };
        /** @description Effects of a restore, done or planned. */
        RestoreReport: {
            /** @description Files of this list that another user or process may have changed. */
            changed_by_others: string[];
            /** @description Whether nothing was done. */
            dry_run: boolean;
            /** @description Files that change. */
            files: components["schemas"]["FileStep"][];
            /** @description Files that stay as they are, although they differ. */
            left_alone: components["schemas"]["FileLeft"][];
            /** @description Files that could not be restored, with the reasons. */
            problems: string[];
            /**
             * Format: uint
             * @description Number of entries that the conversation has then, if it goes back.
             */
            turns?: number | null;
            /**
             * Format: uint
             * @description Number of entries that the conversation had.
             */
            turns_before: number;
            /** @description Checkpoint of the files before; restoring it undoes the restore. */
            undo?: string | null;
        };
        /** @description Target of a rewind. */
        RewindBody: {
            /**
             * Format: uint
             * @description Number of entries of the history that stay.
             */
            turns: number;
        };
        /** @description Permission of a token. Scopes do not include one another. */
        Scope: "read" | "run" | "approve" | "admin";
        /** @description A page of a list. */
        SessionList: {
            /** @description Cursor of the next page; absent on the last one. */
            next?: string | null;
            sessions: components["schemas"]["SessionView"][];
        };
        /** @description State of a session (loop specification, section 2.3). */
        SessionState: "IDLE" | "PROCESSING" | "AWAITING_INPUT" | "CLOSED";
        /** @description A session. */
        SessionView: {
            /**
             * Format: double
             * @description Cost so far in US dollars, if it is known.
             */
            cost_usd?: number | null;
            /** @description Time of its creation, in RFC 3339. */
            created_at: string;
            /** @description Working directory of the tools. */
            directory?: string | null;
            /** @description Reasoning effort. */
            effort?: string | null;
            /** @description Id. */
            id: string;
            /** @description Whether this server has it open. */
            live: boolean;
            /** @description Mode: what happens to calls that no rule names. */
            mode?: string | null;
            /** @description Model. */
            model?: string | null;
            /** @description Session whose subagent it is. */
            parent?: string | null;
            /**
             * Format: uint64
             * @description Number of calls that wait for a decision. Includes calls of its subagents while it is live.
             */
            pending_approvals: number;
            /**
             * Format: uint
             * @description Position among the sessions of the same tenant that wait for room, from 1. Absent unless the session waits.
             */
            queue_position?: number | null;
            /** @description Its state. */
            state: components["schemas"]["SessionState"];
            /** @description Beginning of the first message. */
            title: string;
            /**
             * Format: uint64
             * @description Number of tokens so far.
             */
            tokens?: number | null;
            /** @description Time of the newest change. */
            updated_at: string;
        };
        /** @description Words to candidates. */
        SteerBody: {
            /**
             * Format: uint
             * @description Number of the candidate, from 0. Default: all.
             */
            candidate?: number | null;
            /** @description Words. */
            text: string;
        };
        /** @description A task, with its report. */
        TaskDetail: {
            /** @description Time of its creation, in RFC 3339. */
            created_at: string;
            /** @description Gate that waits for a person; absent if none does. */
            gate?: components["schemas"]["GateView"] | null;
            /** @description Id. */
            id: string;
            /** @description The report, in the form of `pintle task report --output json`. */
            report: unknown;
            /** @description Whether a process has it open. Otherwise, the task resumes when it is run again. */
            running: boolean;
            /** @description State: `under way`, `waits for a person`, `done`, `blocked`, `at its limit`, `cancelled`, `failed` or `cannot be read`. */
            state: string;
            /** @description First line of the goal. */
            title: string;
            /** @description Time of its newest input. */
            updated_at: string;
        };
        /** @description A page of a list. */
        TaskList: {
            /** @description Cursor of the next page; absent on the last one. */
            next?: string | null;
            tasks: components["schemas"]["TaskView"][];
        };
        /** @description A task. */
        TaskView: {
            /** @description Time of its creation, in RFC 3339. */
            created_at: string;
            /** @description Id. */
            id: string;
            /** @description Whether a process has it open. Otherwise, the task resumes when it is run again. */
            running: boolean;
            /** @description State: `under way`, `waits for a person`, `done`, `blocked`, `at its limit`, `cancelled`, `failed` or `cannot be read`. */
            state: string;
            /** @description First line of the goal. */
            title: string;
            /** @description Time of its newest input. */
            updated_at: string;
        };
        /** @description Token of a request. */
        TokenView: {
            /** @description Its name; absent if the server takes requests without tokens. */
            name?: string | null;
            /** @description Its permissions: all if the server takes requests without tokens. */
            scopes: components["schemas"]["Scope"][];
            /** @description Tenant whose sessions it is for. */
            tenant?: string | null;
        };
        /** @description Tools of a session. */
        ToolPage: {
            tools: components["schemas"]["ToolView"][];
        };
        /** @description A tool. */
        ToolView: {
            /** @description Description for the model. */
            description: string;
            /** @description Name. */
            name: string;
            /** @description JSON Schema of the arguments. */
            parameters: unknown;
        };
        /** @description Entry of the conversation. */
        TurnView: {
            /** @description Time, in RFC 3339. */
            at: string;
            /** @description Author of an input or steering message: the name of its token. */
            author?: string | null;
            /**
             * Format: uint64
             * @description Sequence number of the event that added it.
             */
            event: number;
            /**
             * Format: uint
             * @description Number of entries before it.
             */
            index: number;
            /** @description Whether it is the beginning of a response that was stopped. */
            interrupted: boolean;
            /** @description `user`, `assistant`, `tool_results`, `system` or `steering`. */
            kind: string;
            /** @description Its text. */
            text: string;
        };
    };
    responses: {
        /** @description Reason why the request failed */
        Problem: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    readCosts: {
        parameters: {
            query?: {
                /** @description Days up to today, in UTC, at most 366; default 30 */
                days?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CostReport"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    followSessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": unknown;
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    readHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            403: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
        };
    };
    logIn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Login"];
            };
        };
        responses: {
            /** @description Done, or accepted */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    logOut: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or accepted */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            403: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
        };
    };
    readMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": unknown;
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    listModels: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelList"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    readReadiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            403: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            /** @description It is shutting down, or its store does not answer */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
        };
    };
    listSessions: {
        parameters: {
            query?: {
                /** @description Most sessions of the page, up to 500; default 50 */
                limit?: number;
                /** @description `next` of the page before */
                cursor?: string;
                /** @description Text in the title, the id or the directory */
                search?: string;
                /** @description State of the sessions */
                state?: "IDLE" | "PROCESSING" | "AWAITING_INPUT" | "CLOSED";
                /** @description Subagents of this session */
                parent?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionList"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    createSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateBody"];
            };
        };
        responses: {
            /** @description It was created by the same request before */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionView"];
                };
            };
            /** @description The answer */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionView"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    readSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `etag` that you have */
                "if-none-match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionView"];
                };
            };
            /** @description It has not changed */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    deleteSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or accepted */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    changeSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `etag` that the session has to have */
                "if-match"?: string;
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChangeBody"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionView"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            412: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    abort: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    listApprovals: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApprovalList"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    decide: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
                call_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DecisionBody"];
            };
        };
        responses: {
            /** @description Done, or accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    auditSession: {
        parameters: {
            query?: {
                /** @description Form of the document; default json */
                format?: "json" | "text" | "html";
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                    "text/html": unknown;
                    "text/plain": unknown;
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    readBlob: {
        parameters: {
            query?: never;
            header?: {
                /** @description One range of bytes, such as `bytes=0-1023` */
                range?: string;
            };
            path: {
                id: string;
                hash: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": unknown;
                };
            };
            /** @description The range of bytes that was asked for */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": unknown;
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            416: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    listCheckpoints: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CheckpointList"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    compact: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    diff: {
        parameters: {
            query?: {
                /** @description Number of entries of the history before the changes; default 0 */
                turns?: number;
                /** @description Id of a checkpoint, instead */
                checkpoint?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DiffView"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    followSession: {
        parameters: {
            query?: {
                /** @description Id of the last event that you have; a header counts more */
                after?: string;
            };
            header?: {
                /** @description Id of the last event that you have */
                "last-event-id"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": unknown;
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    exportSession: {
        parameters: {
            query?: {
                /** @description Form of the document; default jsonl */
                format?: "jsonl" | "markdown" | "html";
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/jsonl": unknown;
                    "text/html": unknown;
                    "text/markdown": unknown;
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    followUp: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MessageBody"];
            };
        };
        responses: {
            /** @description Done, or accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    forkSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ForkBody"];
            };
        };
        responses: {
            /** @description It was created by the same request before */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionView"];
                };
            };
            /** @description The answer */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionView"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    readHistory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["History"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    interrupt: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done, or accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    readJournal: {
        parameters: {
            query?: {
                /** @description Number of the first line */
                from?: number;
                /** @description Number of the last line */
                to?: number;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/jsonl": unknown;
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    restore: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RestoreBody"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RestoreReport"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    rewind: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RewindBody"];
            };
        };
        responses: {
            /** @description Done, or accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    say: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MessageBody"];
            };
        };
        responses: {
            /** @description Done, or accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    steer: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MessageBody"];
            };
        };
        responses: {
            /** @description Done, or accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    submit: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MessageBody"];
            };
        };
        responses: {
            /** @description Done, or accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    listTools: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolPage"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    followStreams: {
        parameters: {
            query: {
                /** @description Streams, with commas between them: `NAME:sessions`, `NAME:session:ID` or `NAME:task:ID`, and `@EVENT` behind one with an id to begin after this event. You make up the names, each for one stream; messages contain them. At most 100, each of which counts as a request */
                follow: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": unknown;
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    listTasks: {
        parameters: {
            query?: {
                /** @description Most tasks of the page, up to 100; default 50 */
                limit?: number;
                /** @description `next` of the page before */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskList"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    readTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskDetail"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    cancelTask: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CancelBody"];
            };
        };
        responses: {
            /** @description Done, or accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    diffCandidate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                candidate: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/x-diff": unknown;
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    decideTask: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DecideBody"];
            };
        };
        responses: {
            /** @description Done, or accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    followTask: {
        parameters: {
            query?: {
                /** @description Id of the last event that you have; a header counts more */
                after?: string;
            };
            header?: {
                /** @description Id of the last event that you have */
                "last-event-id"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": unknown;
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    reportTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/markdown": unknown;
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    steerTask: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key that you made up. The same request with the same key does nothing again; another body with it is refused. */
                "idempotency-key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SteerBody"];
            };
        };
        responses: {
            /** @description Done, or accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    readToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenView"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
}
