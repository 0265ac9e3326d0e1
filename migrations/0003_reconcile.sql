-- +goose Up

-- The mirror of the gateway's transaction list, and the audits that compare it with our books.

CREATE TABLE mirror (
    transaction_key text PRIMARY KEY,
    payment_key     text NOT NULL,
    order_id        text NOT NULL,
    merchant_id     text NOT NULL DEFAULT '',
    kind            text NOT NULL CONSTRAINT mirror_kind_known CHECK (kind IN ('capture', 'cancel', 'none', 'unrecognized')),
    word            text NOT NULL,
    currency        text NOT NULL,
    amount          bigint NOT NULL CONSTRAINT mirror_amount_not_negative CHECK (amount >= 0),
    negative        boolean NOT NULL,
    at              timestamptz NOT NULL,
    day             date NOT NULL,
    is_foreign      boolean NOT NULL DEFAULT false,
    first_seen_at   timestamptz NOT NULL,
    last_seen_at    timestamptz NOT NULL,
    first_run       bigint NOT NULL
);
COMMENT ON TABLE mirror IS 'The gateway''s own list of transactions, as read. Cancels in it are the set G of the identity.';
COMMENT ON COLUMN mirror.amount IS 'Absolute amount, minor units: the sign of cancel rows is not documented.';
COMMENT ON COLUMN mirror.day IS 'Korean business day of the row.';
COMMENT ON COLUMN mirror.is_foreign IS 'Belongs to another system on the same merchant id, by configuration; counted, never a mismatch.';
CREATE INDEX mirror_by_day ON mirror (day, kind);
CREATE INDEX mirror_by_time ON mirror (at);
CREATE INDEX mirror_of_payment ON mirror (payment_key);

CREATE TABLE list_runs (
    run_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reason      text NOT NULL CONSTRAINT list_runs_reason_known CHECK (reason IN ('poll', 'reread', 'backfill')),
    window_from timestamptz NOT NULL,
    window_to   timestamptz NOT NULL,
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz,
    pages       integer NOT NULL DEFAULT 0,
    rows        integer NOT NULL DEFAULT 0,
    fresh       integer NOT NULL DEFAULT 0,
    quarantined integer NOT NULL DEFAULT 0,
    cursor      text NOT NULL DEFAULT '',
    result      text NOT NULL CONSTRAINT list_runs_result_known CHECK (result IN ('running', 'complete', 'failed')),
    error       text NOT NULL DEFAULT ''
);
COMMENT ON TABLE list_runs IS 'Every read of the gateway''s list: what window, how many pages and rows, and how it ended.';
CREATE INDEX list_runs_complete ON list_runs (window_to DESC) WHERE result = 'complete';

CREATE TABLE audit_runs (
    run_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope      text NOT NULL CONSTRAINT audit_runs_scope_known CHECK (scope IN ('recent', 'day', 'all')),
    day        date,
    started_at timestamptz NOT NULL,
    ended_at   timestamptz NOT NULL,
    as_of      timestamptz NOT NULL,
    verdict    text NOT NULL CONSTRAINT audit_runs_verdict_known CHECK (verdict IN
        ('reconciled', 'reconciled_with_pending', 'breaks', 'incomplete', 'error')),
    statement  jsonb NOT NULL,
    CONSTRAINT audit_runs_day_scope CHECK ((scope = 'day') = (day IS NOT NULL))
);
COMMENT ON TABLE audit_runs IS 'Every audit, passing ones too, with the statement that says what it looked at.';
COMMENT ON COLUMN audit_runs.as_of IS 'The list was read completely up to here.';
CREATE INDEX audit_runs_by_scope ON audit_runs (scope, started_at DESC);
CREATE INDEX audit_runs_by_day ON audit_runs (day, started_at DESC) WHERE day IS NOT NULL;
