-- What is computed from Inspect logs. A column `incomplete` says in words why a figure cannot be had from what was
-- imported; NULL means that it can.

-- One row a sample: `scored` if any dimension has a value, `unscored` if its judge gave none, else without score.
CREATE OR REPLACE VIEW inspect_sample_scores AS
SELECT
    source,
    run,
    cell,
    episode_key,
    any_value(sample_id) AS sample_id,
    any_value(epoch) AS epoch,
    count(value) AS values_given,
    CASE
        WHEN count(value) > 0 THEN 'scored'
        WHEN bool_or(scorer <> '') THEN 'unscored'
        ELSE 'without score'
    END AS state
FROM inspect_scores
GROUP BY source, run, cell, episode_key;

-- One row a log and dimension: mean and standard error over scored samples, with how many there are and how many not.
CREATE OR REPLACE VIEW inspect_dimensions AS
SELECT
    s.source,
    s.run,
    s.cell,
    l.file,
    l.status,
    l.target,
    s.scorer,
    s.dimension,
    count(s.value) AS n,
    any_value(l.samples) - count(DISTINCT s.episode_key) FILTER (s.value IS NOT NULL) AS unscored,
    avg(s.value) AS mean,
    stddev_samp(s.value) / sqrt(n) AS stderr,
    min(s.value) AS lowest,
    max(s.value) AS highest
FROM inspect_scores s
JOIN inspect_logs l USING (source, run, cell)
WHERE s.value IS NOT NULL OR s.dimension <> ''
GROUP BY s.source, s.run, s.cell, l.file, l.status, l.target, s.scorer, s.dimension;

-- One row a log and role: what it spent over all samples.
CREATE OR REPLACE VIEW inspect_usage AS
SELECT
    e.source,
    e.run,
    e.cell,
    c.role,
    c.model,
    count(DISTINCT c.episode_key) AS samples,
    sum(c.uncached_input_tokens) AS uncached_input_tokens,
    sum(c.cache_write_tokens) AS cache_write_tokens,
    sum(c.cache_read_tokens) AS cache_read_tokens,
    sum(c.output_tokens) AS output_tokens,
    sum(c.cost_usd) AS cost_usd
FROM episodes e
JOIN costs c USING (source, episode_key)
WHERE e.source = 'inspect'
GROUP BY ALL;

-- One row a log of an archive: our own reading where the log is here, else what the index tells. Sizes are the index's,
-- because a log's bytes may have been redacted since. Without an index it is the logs that are here.
CREATE OR REPLACE VIEW inspect_archive_logs AS
WITH own AS (
    SELECT
        l.run,
        l.file,
        l.size_bytes,
        l.status,
        l.has_header,
        l.samples,
        count(*) FILTER (s.state = 'scored') AS scored,
        count(*) FILTER (s.state = 'unscored') AS unscored
    FROM inspect_logs l
    LEFT JOIN inspect_sample_scores s USING (source, run, cell)
    GROUP BY l.run, l.cell, l.file, l.size_bytes, l.status, l.has_header, l.samples
    QUALIFY row_number() OVER (PARTITION BY l.file ORDER BY l.run) = 1
),
nan AS (
    SELECT run, file, count(DISTINCT (sample_id, epoch)) FILTER (value IS NULL) AS unscored
    FROM inspect_index_scores
    GROUP BY run, file
),
told AS (
    SELECT
        i.run AS archive,
        i.file,
        i.size_bytes,
        i.status,
        i.has_header,
        i.samples,
        -- A log without judged samples has no line among the scores; with some, a missing line means missing scores.
        CASE WHEN i.judged = 0 THEN 0 ELSE n.unscored END AS unscored,
        i.judged - CASE WHEN i.judged = 0 THEN 0 ELSE n.unscored END AS scored
    FROM inspect_index i
    LEFT JOIN nan n USING (run, file)
)
SELECT
    t.archive,
    t.file,
    t.size_bytes,
    o.file IS NOT NULL AS here,
    coalesce(o.status, t.status) AS status,
    coalesce(o.has_header, t.has_header) AS has_header,
    coalesce(o.samples, t.samples) AS samples,
    coalesce(o.scored, t.scored) AS scored,
    coalesce(o.unscored, t.unscored) AS unscored
FROM told t
LEFT JOIN own o USING (file)
UNION ALL
SELECT NULL, file, size_bytes, true, status, has_header, samples, scored, unscored
FROM own
WHERE NOT EXISTS (FROM inspect_index);

-- Totals of the archive, in one row.
CREATE OR REPLACE VIEW petri_totals AS
SELECT
    count(*) AS logs,
    count(*) FILTER (here) AS logs_here,
    coalesce(sum(size_bytes), 0) AS bytes,
    count(*) FILTER (status = 'success') AS status_success,
    count(*) FILTER (status = 'error') AS status_error,
    count(*) FILTER (status = 'cancelled') AS status_cancelled,
    count(*) FILTER (status = 'started') AS status_started,
    count(*) FILTER (NOT has_header) AS no_header,
    count(*) FILTER (samples = 0) AS zero_samples,
    coalesce(sum(samples), 0) AS samples,
    coalesce(sum(scored), 0) AS samples_scored_dict,
    coalesce(sum(unscored), 0) AS samples_nan_score,
    coalesce(sum(samples - scored - unscored), 0) AS samples_without_score,
    if(count(archive) > 0, NULL, format(
        'no index (evals_index.csv) of the whole archive was imported: these are the {} logs that are here', logs
    )) AS incomplete,
    coalesce(incomplete, if(count(*) = count(scored), NULL, format(
        'of {} of {} logs the scores are unknown: import the index''s scores (scores_long.csv.gz) too',
        count(*) - count(scored), logs
    ))) AS incomplete_scores
FROM inspect_archive_logs;

-- One row a published cell and the file that says it, with what the logs give. `agrees` at the precision as printed.
CREATE OR REPLACE VIEW inspect_published_cells AS
SELECT
    p.*,
    CASE p.table_name
        WHEN 'means' THEN d.mean
        WHEN 'stderr' THEN d.stderr
        WHEN 'pairs' THEN d.mean - m.mean
        ELSE s.value
    END AS ours,
    abs(ours - p.value) <= if(p.decimals IS NULL, 0, 0.5 * 10.0 ** -p.decimals) + 1e-9 AS agrees,
    EXISTS (FROM inspect_logs l WHERE l.run = p.run AND l.file = p.file)
        AND (p.minus_file IS NULL OR EXISTS (FROM inspect_logs l WHERE l.run = p.run AND l.file = p.minus_file)) AS here
FROM inspect_published p
LEFT JOIN inspect_dimensions d ON d.run = p.run AND d.file = p.file AND d.dimension = p.dimension
LEFT JOIN inspect_dimensions m ON m.run = p.run AND m.file = p.minus_file AND m.dimension = p.dimension
LEFT JOIN (SELECT l.file, i.* FROM inspect_scores i JOIN inspect_logs l USING (source, run, cell)) s
    ON p.sample_id <> '' AND s.run = p.run AND s.file = p.file AND s.dimension = p.dimension
    AND s.sample_id = p.sample_id;

-- One row a published table: `cells` is how many of its cells the logs give again, in every file that says them.
CREATE OR REPLACE VIEW petri_matrix_tables AS
WITH stated AS (
    SELECT run, table_name, column_name, dimension, sample_id, bool_and(coalesce(agrees, false)) AS agrees, bool_and(here) AS here
    FROM inspect_published_cells
    GROUP BY ALL
)
SELECT
    run,
    regexp_extract(run, '([0-9]{8})$', 1) AS date,
    table_name,
    count(*) FILTER (agrees) AS cells,
    count(*) AS published,
    count(*) FILTER (NOT agrees) AS differing,
    if(bool_and(here), NULL, format(
        '{} of {} cells are about logs that were not imported', count(*) FILTER (NOT here), count(*)
    )) AS incomplete
FROM stated
GROUP BY run, table_name;
