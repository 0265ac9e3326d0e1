-- +goose Up

-- What each source has spent of each rate limit, for all instances together.
-- Safe on a live table: the table is new. It is unlogged: a crash of the server empties it, and every source may then
-- send its burst once more, which is what a restart of the service meant before.

CREATE UNLOGGED TABLE rate_limits (
    rule    text NOT NULL,
    source  text NOT NULL,
    full_at timestamptz NOT NULL,
    PRIMARY KEY (rule, source)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE rate_limits IS 'What each source has spent of each rate limit. A row is changed by every request that passes and by none that is refused; those whose allowance is whole again are taken away each minute. There is no further index, so that a change stays on its page.';
COMMENT ON COLUMN rate_limits.source IS 'An IPv4 address, or the /64 of an IPv6 address.';
COMMENT ON COLUMN rate_limits.full_at IS 'When the allowance is whole again. Each request moves it by one interval; further ahead than the whole allowance it never is.';
