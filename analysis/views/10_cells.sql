-- One row a cell: what `geode compare` and a first look ask for. INVALID is counted and is no part of the rate.
CREATE OR REPLACE VIEW cell_totals AS
SELECT
    source,
    run,
    cell,
    count(*) AS episodes,
    count(*) FILTER (outcome = 'PASS') AS passes,
    count(*) FILTER (outcome = 'FAIL') AS fails,
    count(*) FILTER (outcome = 'INVALID') AS invalid,
    passes / nullif(passes + fails, 0) AS pass_rate,
    count(DISTINCT task_id) AS tasks,
    count(DISTINCT family) AS families,
    sum(rounds) AS rounds,
    sum(tool_calls) AS tool_calls,
    sum(tool_errors) AS tool_errors,
    sum(repairs_used) AS repairs_used,
    sum(cost_usd) AS cost_usd,                             -- of the episodes whose cost is known
    count(*) FILTER (cost_usd IS NULL) AS unpriced_episodes,
    sum(wall_s) AS wall_s,
    bool_or(simulated) AS simulated
FROM episodes
GROUP BY ALL;

-- One row a cell and task: the pairs that a comparison is made of.
CREATE OR REPLACE VIEW task_totals AS
SELECT
    source,
    run,
    cell,
    task_id,
    any_value(family) AS family,
    count(*) AS episodes,
    count(*) FILTER (outcome = 'PASS') AS passes,
    count(*) FILTER (outcome = 'FAIL') AS fails,
    count(*) FILTER (outcome = 'INVALID') AS invalid,
    passes / nullif(passes + fails, 0) AS pass_rate
FROM episodes
GROUP BY ALL;

-- One row a tool and cell: how often it was called, refused, or failed.
CREATE OR REPLACE VIEW tool_totals AS
SELECT
    e.source,
    e.run,
    e.cell,
    c.tool,
    count(*) AS calls,
    count(*) FILTER (c.call_end = 'not_started') AS refused,
    count(*) FILTER (c.is_error) AS flagged_errors,
    count(*) FILTER (c.error_text AND NOT coalesce(c.is_error, false)) AS unflagged_errors,
    sum(c.elapsed_ms) AS elapsed_ms
FROM episodes e
JOIN tool_calls c USING (source, episode_key)
GROUP BY ALL;
