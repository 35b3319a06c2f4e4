-- Types are fixed here and never inferred from data. There are no keys and no indexes: one writer deletes and inserts
-- whole cells in one transaction, and views count distinct where it matters.

-- One row an experiment of ours, or a result directory of an imported archive.
CREATE TABLE runs (
    source VARCHAR NOT NULL,          -- 'geode' or the archive's format
    run VARCHAR NOT NULL,
    question VARCHAR,
    suite VARCHAR,
    baseline VARCHAR,                 -- the cell that the others are compared with
    ruler_id VARCHAR,                 -- two runs may be compared only under one ruler
    repeats INTEGER,
    created_at TIMESTAMPTZ,           -- NULL where the record has no zone
    geode_version VARCHAR
);

-- One row a variant on a suite.
CREATE TABLE cells (
    source VARCHAR NOT NULL,
    run VARCHAR NOT NULL,
    cell VARCHAR NOT NULL,
    scaffold_id VARCHAR,
    target VARCHAR,                   -- route/id of the target role
    roles VARCHAR,                    -- JSON object: role -> route/id
    overrides VARCHAR[]
);

-- One row a task attempted once, per cell that shows it: an episode shared by two experiments has two rows here and one
-- set of rounds, tool_calls and costs.
CREATE TABLE episodes (
    source VARCHAR NOT NULL,
    run VARCHAR NOT NULL,
    cell VARCHAR NOT NULL,
    episode_key VARCHAR NOT NULL,
    suite VARCHAR,
    task_id VARCHAR,
    family VARCHAR,
    task_hash VARCHAR,
    scaffold_id VARCHAR,
    caps_hash VARCHAR,
    seed BIGINT,
    repetition INTEGER,
    outcome VARCHAR,                  -- PASS, FAIL or INVALID
    score DOUBLE,                     -- NULL for INVALID
    reasons VARCHAR[],
    stop_reason VARCHAR,
    verified BOOLEAN,                 -- did the completion check accept the last answer?
    rounds INTEGER,
    tool_calls INTEGER,
    tool_errors INTEGER,
    refused_calls INTEGER,
    repairs_used INTEGER,
    cost_usd DOUBLE,
    simulated BOOLEAN,
    session_id VARCHAR,
    started_at TIMESTAMPTZ,           -- NULL where the record has no zone
    ended_at TIMESTAMPTZ,
    wall_s DOUBLE,
    cpu_s DOUBLE,
    geode_version VARCHAR,
    python_version VARCHAR
);

-- One row a model call.
CREATE TABLE rounds (
    source VARCHAR NOT NULL,
    episode_key VARCHAR NOT NULL,
    seq BIGINT NOT NULL,              -- place in the timeline
    happened_at TIMESTAMPTZ,
    turn INTEGER,
    round INTEGER,
    stop VARCHAR,
    served_model VARCHAR,
    simulated BOOLEAN,
    latency_ms BIGINT,
    uncached_input_tokens BIGINT,
    cache_write_tokens BIGINT,
    cache_read_tokens BIGINT,
    output_tokens BIGINT,
    cost_usd DOUBLE,
    text VARCHAR,
    error VARCHAR                     -- why there was no response; NULL when there was one
);

-- One row a tool call, refused ones included.
CREATE TABLE tool_calls (
    source VARCHAR NOT NULL,
    episode_key VARCHAR NOT NULL,
    seq BIGINT NOT NULL,              -- place in the timeline, or in the archive's log (from 1)
    happened_at TIMESTAMPTZ,
    turn INTEGER,
    round INTEGER,
    call_id VARCHAR,
    tool VARCHAR,
    arguments VARCHAR,                -- JSON as the model wrote it; may be malformed
    call_end VARCHAR,                 -- not_started, succeeded, failed, uncertain
    is_error BOOLEAN,                 -- what the record's own flag says
    error_text BOOLEAN,               -- the text begins with 'Error:', whatever the flag says
    stage VARCHAR,                    -- where it was refused; '' when it ran
    elapsed_ms DOUBLE,
    result VARCHAR,
    result_chars BIGINT
);

-- One row an episode and role.
CREATE TABLE costs (
    source VARCHAR NOT NULL,
    episode_key VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    model VARCHAR,
    uncached_input_tokens BIGINT,
    cache_write_tokens BIGINT,
    cache_read_tokens BIGINT,
    output_tokens BIGINT,
    cost_usd DOUBLE,
    calls INTEGER,
    latency_ms BIGINT
);

-- What a reader of these rows must know: what was irregular, torn, missing or contradictory.
CREATE TABLE import_issues (
    source VARCHAR NOT NULL,
    run VARCHAR NOT NULL,             -- '' for the archive as a whole
    cell VARCHAR NOT NULL,            -- '' for the run as a whole
    episode_key VARCHAR NOT NULL,     -- '' for the cell as a whole
    kind VARCHAR NOT NULL,
    place VARCHAR NOT NULL,           -- path inside the archive or the state root
    text VARCHAR NOT NULL
);

-- What was imported, from where. Local to this file: deleting the file forgets it.
CREATE TABLE imports (
    source VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    imported_at TIMESTAMPTZ NOT NULL,
    runs INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    issues INTEGER NOT NULL
);

-- MCPMark's meta.json: its 12 keys, flat. NULL where the source has null, nothing, or another type (see import_issues).
CREATE TABLE mcpmark_attempts (
    source VARCHAR NOT NULL,
    run VARCHAR NOT NULL,
    cell VARCHAR NOT NULL,
    episode_key VARCHAR NOT NULL,
    folder VARCHAR NOT NULL,
    task_name VARCHAR,
    model_name VARCHAR,
    litellm_run_model_name VARCHAR,
    reasoning_effort VARCHAR,
    mcp VARCHAR,
    timeout DOUBLE,
    time_start VARCHAR,               -- naive ISO, as recorded: its zone is unknown
    time_end VARCHAR,
    agent_execution_time DOUBLE,
    task_execution_time DOUBLE,
    success BOOLEAN,
    error_message VARCHAR,
    verification_error VARCHAR,
    verification_output VARCHAR,
    usage_model VARCHAR,
    input_tokens BIGINT,
    output_tokens BIGINT,
    cache_read_tokens BIGINT,
    cost_usd DOUBLE,
    turn_count BIGINT,
    aborted BOOLEAN NOT NULL,         -- ended by infrastructure before anything was measured
    has_log BOOLEAN NOT NULL,
    log_torn BOOLEAN NOT NULL,        -- its log breaks off: log_records is what stands before the break
    log_records INTEGER,              -- NULL without a log
    final_answer VARCHAR,
    meta VARCHAR NOT NULL             -- the whole file
);

-- MCPMark's summary.json, as it claims; what the attempts say is in the views.
CREATE TABLE mcpmark_summaries (
    source VARCHAR NOT NULL,
    run VARCHAR NOT NULL,
    cell VARCHAR NOT NULL,
    service VARCHAR,
    total_tasks BIGINT,
    successful_tasks BIGINT,
    failed_tasks BIGINT,
    success_rate DOUBLE,
    total_task_execution_time DOUBLE,
    total_agent_execution_time DOUBLE,
    total_input_tokens BIGINT,
    total_output_tokens BIGINT,
    total_tokens BIGINT,
    total_turns BIGINT,
    summary VARCHAR NOT NULL          -- the whole file
);
