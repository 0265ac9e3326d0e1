-- +goose Up

-- What the list stopped showing, and the indexes that keep an audit as cheap as what changed.
-- Safe on a live table: a nullable column is added without a rewrite; the tables indexed are small when this arrives.

ALTER TABLE mirror ADD COLUMN missing_since timestamptz;
COMMENT ON COLUMN mirror.missing_since IS 'The list once had the row and, read twice, has it no more; NULL as long as it is listed.';
ALTER TABLE mirror ADD COLUMN last_run bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN mirror.last_run IS 'The read of the list that showed the row last.';
CREATE INDEX mirror_missing ON mirror (missing_since) WHERE missing_since IS NOT NULL;

ALTER TABLE list_runs ADD COLUMN missing integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN list_runs.missing IS 'Rows known of the window that this read did not show.';
CREATE INDEX list_runs_by_start ON list_runs (started_at DESC);
CREATE INDEX captures_by_time ON captures (captured_at);
CREATE INDEX mismatches_of_transaction ON mismatches (transaction_key) WHERE transaction_key IS NOT NULL;
CREATE INDEX mismatches_of_payment ON mismatches (payment_key) WHERE payment_key IS NOT NULL;

-- What came to a business day after it was closed, in either book: a probe a day, however long the history.
CREATE INDEX mirror_of_day_by_seen ON mirror (day, first_seen_at);
CREATE INDEX cancels_of_day_by_record ON cancels (((canceled_at AT TIME ZONE 'Asia/Seoul')::date), recorded_at);
CREATE INDEX captures_of_day_by_record ON captures (((captured_at AT TIME ZONE 'Asia/Seoul')::date), recorded_at);

-- How far the list was read, kept as it is read: the reads themselves need not be kept for ever to know it.
CREATE TABLE list_covered (
    only_row  boolean PRIMARY KEY DEFAULT true CONSTRAINT list_covered_is_one_row CHECK (only_row),
    stretches tstzmultirange NOT NULL
);
COMMENT ON TABLE list_covered IS 'The stretches of time for which the gateway''s list was read completely; one row.';
DROP INDEX list_runs_complete;
CREATE INDEX list_runs_polled ON list_runs (window_to) WHERE result = 'complete' AND reason = 'poll';
CREATE INDEX list_runs_by_window ON list_runs (window_to);

-- What became of a payment's work, for mismatches that it settled.
CREATE INDEX work_closed_of_payment ON work (payment_key) WHERE closed_at IS NOT NULL;
