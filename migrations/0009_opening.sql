-- +goose Up

-- Reads of the gateway's list that go on where a dead reader stopped, and the opening of the books: what was taken over
-- from the system before us, with the gateway's evidence.
-- Safe on a live table: the columns added have constant defaults, so nothing is rewritten; list_runs is small.

ALTER TABLE list_runs DROP CONSTRAINT list_runs_reason_known;
ALTER TABLE list_runs ADD CONSTRAINT list_runs_reason_known CHECK (reason IN ('poll', 'reread', 'backfill', 'make_up'));
ALTER TABLE list_runs ADD COLUMN turn integer NOT NULL DEFAULT 1;
ALTER TABLE list_runs ADD COLUMN paused_until timestamptz;
COMMENT ON COLUMN list_runs.cursor IS 'The row after which the next page begins, written with the page before it: where a dead reader''s successor goes on.';
COMMENT ON COLUMN list_runs.turn IS 'Counts the readers of this run. One that was overtaken finds another number and writes nothing more.';
COMMENT ON COLUMN list_runs.paused_until IS 'The gateway refused by rate: nobody reads the list before.';
CREATE INDEX list_runs_running ON list_runs (run_id) WHERE result = 'running';
CREATE INDEX list_runs_paused ON list_runs (paused_until) WHERE paused_until IS NOT NULL;
CREATE INDEX list_runs_made_up ON list_runs (run_id DESC) WHERE reason = 'make_up';

CREATE TABLE imports (
    import_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source     text NOT NULL CONSTRAINT imports_source_known CHECK (source IN ('csv', 'mirror')),
    digest     bytea NOT NULL,
    name       text NOT NULL DEFAULT '' CONSTRAINT imports_name_bounded CHECK (length(name) <= 300),
    opening_at timestamptz NOT NULL,
    started_by text NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at   timestamptz,
    rows       integer NOT NULL,
    CONSTRAINT imports_one_per_content UNIQUE (source, digest)
);
COMMENT ON TABLE imports IS 'What was taken over from the system before this one. The same file or stretch again goes on with its own row.';
COMMENT ON COLUMN imports.digest IS 'SHA-256 of the file, or of the stretch chosen from the mirror.';
COMMENT ON COLUMN imports.ended_at IS 'When every row had a result; NULL while one is left.';

CREATE TABLE import_rows (
    import_id   bigint NOT NULL REFERENCES imports (import_id),
    line        integer NOT NULL CONSTRAINT import_rows_line_positive CHECK (line >= 1),
    payment_key text NOT NULL DEFAULT '',
    order_id    text NOT NULL DEFAULT '',
    result      text NOT NULL CONSTRAINT import_rows_result_known CHECK (result IN ('imported', 'known', 'rejected')),
    reason      text NOT NULL DEFAULT '' CONSTRAINT import_rows_reason_bounded CHECK (length(reason) <= 500),
    recorded_at timestamptz NOT NULL,
    PRIMARY KEY (import_id, line)
);
COMMENT ON TABLE import_rows IS 'What became of each row, written in the transaction that put its payment in the books.';
CREATE INDEX import_rows_of_payment ON import_rows (payment_key) WHERE payment_key <> '';

-- What is taken away in time, found by an index each.
CREATE INDEX cancel_requests_with_account ON cancel_requests (key_first_used_at) WHERE refund_account IS NOT NULL;
CREATE INDEX mirror_without_money ON mirror (at) WHERE kind = 'none' OR is_foreign;
