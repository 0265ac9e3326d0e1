-- +goose Up

-- Which reads of the list touched a business day is asked for a day of any age: its cost must not follow what was read since.
-- Safe on a live table: list_runs is small.

DROP INDEX list_runs_by_window;
CREATE INDEX list_runs_by_window ON list_runs USING gist (tstzrange(window_from, window_to, '[]'));

COMMENT ON TABLE days_to_close IS 'Business days of any age of which anything changed since they were closed, or that the list was read for only now. An audit and the end of a read note them, the closing run that looks takes the note back.';
