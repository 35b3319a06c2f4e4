-- What is computed from an imported MCPMark archive. A column `incomplete` says in words why a figure cannot be had from
-- what was imported; NULL means that it can.

-- One row an attempt, with the words that the figures use. `verified` marks the runs over MCPMark's verified task set.
CREATE OR REPLACE VIEW mcpmark_attempt AS
SELECT
    *,
    coalesce(task_name, folder) AS task,
    split_part(task, '__', 1) AS category,
    regexp_replace(task, '^.*?__', '') AS short_task,
    contains(run, '-mcpmark-verified-') AS verified,
    coalesce(success, false) AS passed
FROM mcpmark_attempts;

-- Totals over every scope: all, service, verified (by service), dir, category (service/category), task (in a dir).
-- Names are those of meta.json (short) and of summary.json (total_, avg_): one figure, both words.
CREATE OR REPLACE VIEW mcpmark_totals AS
WITH scoped AS (
    SELECT unnest([
        {'scope': 'all', 'name': ''},
        {'scope': 'service', 'name': mcp},
        {'scope': 'dir', 'name': run},
        {'scope': 'verified', 'name': if(verified, mcp, NULL)},
        {'scope': 'category', 'name': if(verified, mcp || '/' || category, NULL)}
    ], recursive := true), a.*
    FROM mcpmark_attempt a
),
summed AS (
    SELECT
        scope,
        name,
        count(*) AS attempts,
        count(*) FILTER (passed) AS passes,
        count(*) FILTER (NOT passed) AS failures,
        count(*) FILTER (aborted) AS aborted,
        count(DISTINCT task) AS tasks,
        count(DISTINCT task) FILTER (passed) AS passed_tasks,
        coalesce(sum(input_tokens), 0) AS input_tokens,
        coalesce(sum(output_tokens), 0) AS output_tokens,
        coalesce(sum(cache_read_tokens), 0) AS cache_read_tokens,
        coalesce(fsum(cost_usd), 0) AS cost_usd,
        coalesce(sum(turn_count), 0) AS turns,
        coalesce(fsum(agent_execution_time), 0) AS agent_seconds,
        coalesce(fsum(task_execution_time), 0) AS task_seconds
    FROM scoped
    WHERE name IS NOT NULL
    GROUP BY scope, name
)
SELECT
    *,
    100.0 * passes / attempts AS success_rate,
    attempts AS task_attempts,
    attempts AS total_tasks,
    passes AS successful_tasks,
    failures AS failed_tasks,
    input_tokens AS total_input_tokens,
    output_tokens AS total_output_tokens,
    input_tokens + output_tokens AS total_tokens,
    turns AS total_turns,
    turns AS turn_count,
    task_seconds AS total_task_execution_time,
    agent_seconds AS total_agent_execution_time,
    input_tokens / attempts AS avg_input_tokens,
    output_tokens / attempts AS avg_output_tokens,
    total_tokens / attempts AS avg_total_tokens,
    turns / attempts AS avg_turns,
    task_seconds / attempts AS average_task_execution_time,
    task_seconds / attempts AS avg_time,
    agent_seconds / attempts AS average_agent_execution_time
FROM summed;

-- Execution logs by scope. Without every log of the attempts that ran, no total over them can be had.
CREATE OR REPLACE VIEW mcpmark_logs AS
WITH scoped AS (
    SELECT unnest([
        {'scope': 'all', 'name': ''},
        {'scope': 'service', 'name': mcp},
        {'scope': 'dir', 'name': run},
        {'scope': 'verified', 'name': if(verified, mcp, NULL)}
    ], recursive := true), a.*
    FROM mcpmark_attempt a
)
SELECT
    scope,
    name,
    count(*) FILTER (has_log) AS files,
    coalesce(sum(log_records), 0) AS records,
    count(*) FILTER (NOT has_log AND NOT aborted) AS missing,
    count(*) FILTER (log_torn) AS torn,
    if(missing + torn = 0, NULL, format(
        'of {} attempts that ran, {} have no execution.log here and {} a broken one; the {} logs hold {} records',
        missing + files, missing, torn, files, records
    )) AS incomplete
FROM scoped
WHERE name IS NOT NULL
GROUP BY scope, name;

-- Calls by service and by the server's isError flag, over all attempts.
CREATE OR REPLACE VIEW mcpmark_is_error AS
SELECT
    a.mcp AS service,
    CASE WHEN c.is_error THEN 'True' WHEN NOT c.is_error THEN 'False' ELSE 'None' END AS flag,
    service || ':' || flag AS service_flag,
    count(*) AS calls,
    count(*) FILTER (c.error_text AND NOT coalesce(c.is_error, false)) AS unflagged_errors,
    any_value(of_service.incomplete) AS incomplete_service,
    any_value(of_all.incomplete) AS incomplete
FROM mcpmark_attempt a
JOIN tool_calls c USING (source, episode_key)
JOIN mcpmark_logs of_service ON of_service.scope = 'service' AND of_service.name = a.mcp
JOIN mcpmark_logs of_all ON of_all.scope = 'all'
GROUP BY a.mcp, flag;

-- Verified tasks by service: attempts as they were made, and tasks counted once (passed if any attempt passed).
CREATE OR REPLACE VIEW mcpmark_verified AS
SELECT name AS service, passes, attempts, passed_tasks, tasks
FROM mcpmark_totals
WHERE scope = 'verified';

-- One row a task under its full and, where it is unique, its short name: the one attempt that ran.
CREATE OR REPLACE VIEW mcpmark_task AS
WITH ran AS (
    SELECT
        *,
        count(*) OVER (PARTITION BY task) AS attempts_of_task,
        row_number() OVER (PARTITION BY task ORDER BY time_end DESC, run DESC) AS latest_first
    FROM mcpmark_attempt
    WHERE NOT aborted
),
one AS (
    SELECT
        *,
        if(attempts_of_task = 1, NULL, format(
            'the task was attempted {} times; its latest attempt is in {}', attempts_of_task, run
        )) AS several,
        CASE
            WHEN NOT has_log THEN 'the execution.log of this task is not in the imported archive'
            WHEN log_torn THEN format('the execution.log of this task breaks off after {} records', log_records)
        END AS no_log,
        regexp_extract(verification_output, '(\d+) passed, (\d+) failed', ['passed', 'failed']) AS counted,
        regexp_extract(verification_output, '(\d+)/(\d+) checks passed', ['passed', 'all']) AS of_all
    FROM ran
    WHERE latest_first = 1
),
named AS (
    SELECT task AS name, * FROM one
    UNION ALL
    SELECT short_task AS name, * FROM one WHERE short_task <> task QUALIFY count(*) OVER (PARTITION BY short_task) = 1
)
SELECT
    name,
    task,
    mcp AS service,
    run,
    passed AS success,
    turn_count AS turns,
    input_tokens,
    output_tokens,
    cache_read_tokens,
    cost_usd,
    agent_execution_time AS agent_seconds,
    task_execution_time AS task_seconds,
    timeout,
    log_records AS calls,
    coalesce(try_cast(counted.passed AS INTEGER), try_cast(of_all.passed AS INTEGER)) AS checks_passed,
    coalesce(
        try_cast(counted.failed AS INTEGER), try_cast(of_all.all AS INTEGER) - try_cast(of_all.passed AS INTEGER)
    ) AS checks_failed,
    NOT EXISTS (
        FROM tool_calls c WHERE c.source = one_source AND c.episode_key = named.episode_key AND c.is_error IS DISTINCT FROM false
    ) AS all_non_error,
    NOT EXISTS (
        FROM tool_calls c
        WHERE c.source = one_source AND c.episode_key = named.episode_key AND (c.is_error OR c.error_text)
    ) AS all_without_error_text,
    several AS incomplete,
    coalesce(several, no_log) AS incomplete_log,
    coalesce(several, if(checks_passed IS NULL, 'its verifier prints no count of checks', NULL)) AS incomplete_checks
FROM (SELECT *, source AS one_source FROM named) named;

-- The calls of those attempts, in order.
CREATE OR REPLACE VIEW mcpmark_call AS
SELECT t.name, t.task, t.incomplete_log AS incomplete, c.*
FROM mcpmark_task t
JOIN mcpmark_attempt a ON a.task = t.task AND a.run = t.run
JOIN tool_calls c USING (source, episode_key);

-- What the SQL of a call creates and alters, counted outside comments.
CREATE OR REPLACE VIEW mcpmark_call_statements AS
WITH bare AS (
    SELECT
        *,
        regexp_replace(regexp_replace(
            coalesce(json_extract_string(arguments, '$.sql'), ''), '/\*.*?\*/', ' ', 'gs'), '--[^\n]*', ' ', 'g') AS sql
    FROM mcpmark_call
)
SELECT
    name,
    task,
    seq AS call,
    tool,
    is_error,
    len(regexp_extract_all(sql, '(?i)\bcreate\s+(or\s+replace\s+)?function\b')) AS functions,
    len(regexp_extract_all(sql, '(?i)\bcreate\s+policy\b')) AS policies,
    len(regexp_extract_all(sql, '(?i)\benable\s+row\s+level\s+security\b')) AS enable_rls,
    len(regexp_extract_all(sql, '(?i)\bforce\s+row\s+level\s+security\b')) AS force_rls,
    len(regexp_extract_all(sql, '(?i)\bgrant\s')) AS grants,
    len(regexp_extract_all(sql, '(?i)\bcreate\s+(temp(orary)?\s+|unlogged\s+)?table\b')) AS tables,
    len(regexp_extract_all(sql, '(?i)\bcreate\s+(or\s+replace\s+)?(materialized\s+)?view\b')) AS views,
    len(regexp_extract_all(sql, '(?i)\bcreate\s+(unique\s+)?index\b')) AS indexes,
    len(regexp_extract_all(sql, '(?i)\bcreate\s+(or\s+replace\s+)?(constraint\s+)?trigger\b')) AS triggers,
    len(regexp_extract_all(sql, '(?i)\bdrop\s+policy\b')) AS dropped_policies,
    incomplete
FROM bare;
