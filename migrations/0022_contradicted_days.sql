-- +goose Up

-- A mismatch about one transaction that opens, ends or has other money marks its business day. Safe on a live table: a
-- trigger waits for those who write mismatches, for an instant. It is a migration of its own, so that no two tables are
-- locked together.

-- The day of the transaction: that of its row in the list; of a row that cannot be held, the one it names, or else the day
-- on which it was found.
-- +goose StatementBegin
CREATE FUNCTION audit_dirty_contradicted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_dirty (subject, key, payment_key)
    SELECT 'day', to_char(COALESCE((SELECT g.at FROM mirror g WHERE g.transaction_key = NEW.transaction_key),
        CASE WHEN NEW.gateway ->> 'at' ~ '^2[0-9]{3}-' THEN (NEW.gateway ->> 'at')::timestamptz END,
        NEW.opened_at) AT TIME ZONE 'Asia/Seoul', 'YYYY-MM-DD'), '';
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER mismatches_contradicted AFTER INSERT ON mismatches FOR EACH ROW
    WHEN (NEW.status <> 'resolved' AND NEW.transaction_key IS NOT NULL
        AND NEW.kind IN ('history_changed', 'quarantined', 'unrecognized_status'))
    EXECUTE FUNCTION audit_dirty_contradicted();
CREATE TRIGGER mismatches_contradicted_changed AFTER UPDATE ON mismatches FOR EACH ROW
    WHEN (NEW.transaction_key IS NOT NULL AND NEW.kind IN ('history_changed', 'quarantined', 'unrecognized_status')
        AND (OLD.status = 'resolved', OLD.currency, OLD.amount) IS DISTINCT FROM (NEW.status = 'resolved', NEW.currency, NEW.amount))
    EXECUTE FUNCTION audit_dirty_contradicted();

-- The days of what is open already.
INSERT INTO audit_dirty (subject, key, payment_key)
SELECT DISTINCT 'day', to_char(COALESCE((SELECT g.at FROM mirror g WHERE g.transaction_key = m.transaction_key),
    CASE WHEN m.gateway ->> 'at' ~ '^2[0-9]{3}-' THEN (m.gateway ->> 'at')::timestamptz END,
    m.opened_at) AT TIME ZONE 'Asia/Seoul', 'YYYY-MM-DD'), ''
FROM mismatches m
WHERE m.status <> 'resolved' AND m.transaction_key IS NOT NULL AND m.kind IN ('history_changed', 'quarantined', 'unrecognized_status');
