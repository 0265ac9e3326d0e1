-- +goose Up

-- What a closed business day says, what it said before, and who signed it.
-- Safe on a live table: nullable columns are added without a rewrite, the check of kinds only widens, and the new tables
-- are empty. Closing runs from before have no statement that could be signed; the next one of their day has.

ALTER TABLE audit_runs
    ADD COLUMN closed bytea,
    ADD COLUMN digest bytea CONSTRAINT audit_runs_digest_whole CHECK (length(digest) = 32),
    ADD COLUMN facts  bytea CONSTRAINT audit_runs_facts_whole CHECK (length(facts) = 32),
    ADD CONSTRAINT audit_runs_closed_is_whole CHECK ((closed IS NULL) = (digest IS NULL) AND (closed IS NULL) = (facts IS NULL)),
    ADD CONSTRAINT audit_runs_closed_is_of_a_day CHECK (closed IS NULL OR scope = 'day');
COMMENT ON COLUMN audit_runs.closed IS 'What the day says, in bytes of our own, whenever and however often it is looked at; NULL where the run could not see the whole day.';
COMMENT ON COLUMN audit_runs.digest IS 'SHA-256 of closed.';
COMMENT ON COLUMN audit_runs.facts IS 'SHA-256 over what a signature covers: a pending cancel that is applied as listed leaves it as it is.';
CREATE INDEX audit_runs_closed ON audit_runs (day, run_id) WHERE closed IS NOT NULL;

CREATE TABLE day_rows (
    day             date NOT NULL,
    movement        text NOT NULL CONSTRAINT day_rows_movement_known CHECK (movement IN ('capture', 'cancel')),
    transaction_key text NOT NULL,
    payment_key     text NOT NULL,
    order_id        text NOT NULL,
    standing        text NOT NULL CONSTRAINT day_rows_standing_known CHECK (standing IN
        ('applied', 'pending', 'accepted', 'not_yet_listed', 'breaks')),
    at              timestamptz NOT NULL,
    listed_currency text,
    listed          bigint,
    booked_currency text,
    booked          bigint,
    first_run       bigint NOT NULL,
    gone_run        bigint CONSTRAINT day_rows_gone_later CHECK (gone_run > first_run),
    PRIMARY KEY (day, movement, transaction_key, payment_key, first_run)
);
COMMENT ON TABLE day_rows IS 'The transactions of each closed day as its closing runs saw them: what a day said before can be told even when both books have changed.';
COMMENT ON COLUMN day_rows.transaction_key IS 'Empty for a capture of ours that the gateway has not named.';
COMMENT ON COLUMN day_rows.listed IS 'In the gateway''s list, minor units; NULL: not there.';
COMMENT ON COLUMN day_rows.booked IS 'In our books, minor units; NULL: not there.';
COMMENT ON COLUMN day_rows.first_run IS 'The closing run that saw the row like this first.';
COMMENT ON COLUMN day_rows.gone_run IS 'The closing run that no longer saw it like this; NULL as long as it stands.';
CREATE UNIQUE INDEX day_rows_standing_now ON day_rows (day, movement, transaction_key, payment_key) WHERE gone_run IS NULL;
CREATE INDEX day_rows_by_first_run ON day_rows (day, first_run);
CREATE INDEX day_rows_by_gone_run ON day_rows (day, gone_run) WHERE gone_run IS NOT NULL;

CREATE TABLE days_to_close (
    day   date PRIMARY KEY,
    since timestamptz NOT NULL
);
COMMENT ON TABLE days_to_close IS 'Closed business days of which anything changed since, of any age. An audit notes them, the closing run that looks takes the note back.';

CREATE TABLE day_signoffs (
    signoff_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    day          date NOT NULL,
    signed_by    text NOT NULL CONSTRAINT day_signoffs_by_a_person CHECK (signed_by NOT IN ('', 'system')),
    signed_at    timestamptz NOT NULL,
    run_id       bigint NOT NULL REFERENCES audit_runs (run_id),
    digest       bytea NOT NULL CONSTRAINT day_signoffs_digest_whole CHECK (length(digest) = 32),
    facts        bytea NOT NULL CONSTRAINT day_signoffs_facts_whole CHECK (length(facts) = 32),
    journal_head text,
    note         text NOT NULL DEFAULT '' CONSTRAINT day_signoffs_note_bounded CHECK (length(note) <= 500)
);
COMMENT ON TABLE day_signoffs IS 'Who signed which statement of a business day. Never changed or deleted; the newest of a day counts.';
COMMENT ON COLUMN day_signoffs.run_id IS 'The closing run made for the signature, in the same transaction.';
COMMENT ON COLUMN day_signoffs.digest IS 'SHA-256 of the statement that was signed.';
COMMENT ON COLUMN day_signoffs.journal_head IS 'Hash of the day''s journal head when it was signed; NULL where the day was not sealed.';
CREATE INDEX day_signoffs_of_day ON day_signoffs (day, signoff_id);
CREATE INDEX day_signoffs_of_run ON day_signoffs (run_id);

-- +goose StatementBegin
CREATE FUNCTION signoff_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a signature is for good: % on % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'day_signoffs_append_only';
END $$;
-- +goose StatementEnd

CREATE TRIGGER day_signoffs_append_only BEFORE UPDATE OR DELETE ON day_signoffs
    FOR EACH ROW EXECUTE FUNCTION signoff_is_append_only();
CREATE TRIGGER day_signoffs_no_truncate BEFORE TRUNCATE ON day_signoffs
    FOR EACH STATEMENT EXECUTE FUNCTION signoff_is_append_only();

ALTER TABLE mismatches DROP CONSTRAINT mismatches_kind_known;
ALTER TABLE mismatches ADD CONSTRAINT mismatches_kind_known CHECK (kind IN
    ('cancel_missing_here', 'cancel_missing_there', 'amount_differs', 'currency_differs', 'order_differs',
     'merchant_differs', 'payment_without_order', 'order_without_payment', 'order_paid_twice', 'paid_after_expiry',
     'stale_unknown', 'credits_already_spent', 'history_changed', 'quarantined', 'unrecognized_status', 'signed_day_changed'));
