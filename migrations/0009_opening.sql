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
