-- What providers say of a call, the requests that gave no response, and what is not known of the cost.

ALTER TABLE rounds ADD COLUMN reasoning_tokens BIGINT;  -- a part of output_tokens
ALTER TABLE rounds ADD COLUMN cost_origin VARCHAR;      -- reported, computed, simulated, unknown
ALTER TABLE rounds ADD COLUMN provider VARCHAR;         -- who ran the model, behind a route that leads to several
ALTER TABLE rounds ADD COLUMN request_id VARCHAR;       -- the provider's own name of the request

ALTER TABLE costs ADD COLUMN reasoning_tokens BIGINT;
ALTER TABLE costs ADD COLUMN unpriced_calls INTEGER;    -- calls whose cost nobody knows; cost_usd is without them

-- One row a request that gave no response, and was sent again or given up.
CREATE TABLE attempts (
    source VARCHAR NOT NULL,
    episode_key VARCHAR NOT NULL,
    seq BIGINT NOT NULL,              -- place in the timeline
    happened_at TIMESTAMPTZ,
    turn INTEGER,
    round INTEGER,
    error VARCHAR,
    status INTEGER,                   -- of HTTP; NULL where no reply came
    request_id VARCHAR,
    elapsed_ms BIGINT,
    waited_ms BIGINT,                 -- before the next request
    cost_usd DOUBLE                   -- NULL where nobody knows it
);
