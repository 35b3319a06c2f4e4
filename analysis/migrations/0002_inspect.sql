-- Logs of Inspect. A sample is a row of `episodes`, and what its roles spent is in `costs`; here is what only Inspect has.

-- One row a log (an audit). Counts are those of the samples that are in the log, whatever its data set was to be.
CREATE TABLE inspect_logs (
    source VARCHAR NOT NULL,
    run VARCHAR NOT NULL,             -- the folder that the log lay in
    cell VARCHAR NOT NULL,            -- its name without .eval
    file VARCHAR NOT NULL,
    path VARCHAR NOT NULL,            -- where it was when it was imported
    size_bytes BIGINT NOT NULL,
    status VARCHAR NOT NULL,          -- started (killed), success, cancelled, error
    has_header BOOLEAN NOT NULL,
    eval_id VARCHAR,
    task VARCHAR,
    task_id VARCHAR,
    created_at TIMESTAMPTZ,
    started_at TIMESTAMPTZ,
    completed_at TIMESTAMPTZ,
    model VARCHAR,                    -- 'none/none' where roles have models of their own
    roles VARCHAR NOT NULL,           -- JSON object: role -> route/id
    auditor VARCHAR,
    target VARCHAR,
    judge VARCHAR,
    dataset VARCHAR,
    dataset_samples BIGINT,           -- as claimed; never the number of samples
    sample_limit VARCHAR,             -- JSON: a number, or two
    epochs INTEGER,
    inspect_version VARCHAR,
    git_commit VARCHAR,
    error VARCHAR,
    samples INTEGER NOT NULL,
    eval VARCHAR NOT NULL             -- JSON: the whole specification
);

-- One row a sample and epoch.
CREATE TABLE inspect_samples (
    source VARCHAR NOT NULL,
    run VARCHAR NOT NULL,
    cell VARCHAR NOT NULL,
    episode_key VARCHAR NOT NULL,
    sample_id VARCHAR NOT NULL,
    epoch INTEGER NOT NULL,
    uuid VARCHAR,
    started_at TIMESTAMPTZ,
    completed_at TIMESTAMPTZ,
    total_s DOUBLE,
    working_s DOUBLE,
    messages INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    error VARCHAR                     -- NULL unless the sample failed
);

-- One row a sample, scorer and dimension. Either `value` or `unscored` is NULL, never both.
CREATE TABLE inspect_scores (
    source VARCHAR NOT NULL,
    run VARCHAR NOT NULL,
    cell VARCHAR NOT NULL,
    episode_key VARCHAR NOT NULL,
    sample_id VARCHAR NOT NULL,
    epoch INTEGER NOT NULL,
    scorer VARCHAR NOT NULL,          -- '' for a sample without any score
    dimension VARCHAR NOT NULL,       -- '' where the scorer gave one value, or nothing
    value DOUBLE,
    unscored VARCHAR                  -- why there is no value
);

-- An index of an archive, as somebody else made it: tells of logs that are not here.
CREATE TABLE inspect_index (
    source VARCHAR NOT NULL,
    run VARCHAR NOT NULL,             -- the folder that the index lay in
    file VARCHAR NOT NULL,
    size_bytes BIGINT NOT NULL,
    sha256 VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    has_header BOOLEAN NOT NULL,
    samples INTEGER NOT NULL,
    judged INTEGER NOT NULL,          -- samples with a judge's score, NaN included
    auditor VARCHAR,
    target VARCHAR,
    judge VARCHAR,
    seed_source VARCHAR,
    created VARCHAR
);

-- The scores beside such an index; NULL is NaN there.
CREATE TABLE inspect_index_scores (
    source VARCHAR NOT NULL,
    run VARCHAR NOT NULL,
    file VARCHAR NOT NULL,
    sample_id VARCHAR NOT NULL,
    epoch INTEGER NOT NULL,
    scorer VARCHAR NOT NULL,
    dimension VARCHAR NOT NULL,
    value DOUBLE
);

-- Tables that somebody published about logs, cell by cell, to be held against what the logs give.
CREATE TABLE inspect_published (
    source VARCHAR NOT NULL,
    run VARCHAR NOT NULL,             -- the folder of the tables and their logs
    place VARCHAR NOT NULL,           -- the file that says it
    table_name VARCHAR NOT NULL,      -- means, stderr, pairs, per_sample_rows
    column_name VARCHAR NOT NULL,     -- the archive or pair, by its published name
    dimension VARCHAR NOT NULL,
    sample_id VARCHAR NOT NULL,       -- '' for a statement about all samples
    file VARCHAR NOT NULL,
    minus_file VARCHAR,               -- whose mean is subtracted
    value DOUBLE NOT NULL,
    decimals INTEGER                  -- as printed; NULL for all
);
