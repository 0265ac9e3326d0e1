-- +goose Up

-- What our books say of a day is held against the journal, and what its closing runs kept is changed by nobody.
-- Safe on a live table: the index is built in one reading of the captures, some seconds for ten million of them, and few are
-- in it; meanwhile they are read and not written. The tables are taken in the order in which the service writes them, and the
-- check of kinds only widens.

-- The deposits of a day that were taken back.
CREATE INDEX captures_by_reversal ON captures (reversed_at) WHERE reversed_at IS NOT NULL;

-- The rows of a closed day are only ever ended: by the run that no longer saw them.
-- +goose StatementBegin
CREATE FUNCTION day_rows_are_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF OLD.gone_run IS NULL AND NEW.gone_run IS NOT NULL THEN
            OLD.gone_run := NEW.gone_run;
            IF OLD IS NOT DISTINCT FROM NEW THEN
                RETURN NEW;
            END IF;
        END IF;
    END IF;
    RAISE EXCEPTION 'what a closed day said is for good: % on % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'day_rows_append_only';
END $$;
-- +goose StatementEnd
CREATE TRIGGER day_rows_append_only BEFORE UPDATE OR DELETE ON day_rows
    FOR EACH ROW EXECUTE FUNCTION day_rows_are_append_only();
CREATE TRIGGER day_rows_no_truncate BEFORE TRUNCATE ON day_rows
    FOR EACH STATEMENT EXECUTE FUNCTION day_rows_are_append_only();

-- No audit is changed, and the runs of a day stay for good. Those of each minute and of everything go when they are old.
-- +goose StatementBegin
CREATE FUNCTION audit_runs_are_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.scope <> 'day' THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'what an audit said is for good: % on % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'audit_runs_append_only';
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_runs_append_only BEFORE UPDATE OR DELETE ON audit_runs
    FOR EACH ROW EXECUTE FUNCTION audit_runs_are_append_only();
CREATE TRIGGER audit_runs_no_truncate BEFORE TRUNCATE ON audit_runs
    FOR EACH STATEMENT EXECUTE FUNCTION audit_runs_are_append_only();

-- A difference between our books and the journal is a mismatch of its own kind. It breaks the day on which its transaction
-- happened by our books.
ALTER TABLE mismatches DROP CONSTRAINT mismatches_kind_known;
ALTER TABLE mismatches ADD CONSTRAINT mismatches_kind_known CHECK (kind IN
    ('cancel_missing_here', 'cancel_missing_there', 'amount_differs', 'currency_differs', 'order_differs',
     'merchant_differs', 'payment_without_order', 'order_without_payment', 'order_paid_twice', 'paid_after_expiry',
     'stale_unknown', 'credits_already_spent', 'history_changed', 'quarantined', 'unrecognized_status', 'signed_day_changed',
     'journal_differs'));
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION audit_dirty_contradicted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_dirty (subject, key, payment_key)
    SELECT 'day', to_char(COALESCE(CASE WHEN NEW.kind = 'journal_differs' THEN (NEW.books ->> 'at')::timestamptz END,
        (SELECT g.at FROM mirror g WHERE g.transaction_key = NEW.transaction_key),
        CASE WHEN NEW.gateway ->> 'at' ~ '^2[0-9]{3}-' THEN (NEW.gateway ->> 'at')::timestamptz END,
        NEW.opened_at) AT TIME ZONE 'Asia/Seoul', 'YYYY-MM-DD'), '';
    RETURN NULL;
END $$;
-- +goose StatementEnd
DROP TRIGGER mismatches_contradicted ON mismatches;
CREATE TRIGGER mismatches_contradicted AFTER INSERT ON mismatches FOR EACH ROW
    WHEN (NEW.status <> 'resolved' AND NEW.transaction_key IS NOT NULL
        AND NEW.kind IN ('history_changed', 'quarantined', 'unrecognized_status', 'journal_differs'))
    EXECUTE FUNCTION audit_dirty_contradicted();
DROP TRIGGER mismatches_contradicted_changed ON mismatches;
CREATE TRIGGER mismatches_contradicted_changed AFTER UPDATE ON mismatches FOR EACH ROW
    WHEN (NEW.transaction_key IS NOT NULL AND NEW.kind IN ('history_changed', 'quarantined', 'unrecognized_status', 'journal_differs')
        AND (OLD.status = 'resolved', OLD.currency, OLD.amount) IS DISTINCT FROM (NEW.status = 'resolved', NEW.currency, NEW.amount))
    EXECUTE FUNCTION audit_dirty_contradicted();
