-- +goose Up

-- What tells a deposit that fell back from an old answer of the gateway's, and what takes a wrong judgement back.
-- Safe on a live table: nullable columns are added without a rewrite. The index that is rebuilt is as large as the
-- captures; while it is built, captures are read and not written.

ALTER TABLE payments ADD COLUMN money_seen_at timestamptz;
COMMENT ON COLUMN payments.money_seen_at IS 'A deposit that was taken back was seen standing again, first then; a later look that says the same books it again.';
COMMENT ON COLUMN payments.waiting_seen_at IS 'A paid virtual account was seen without its deposit, first then; a later look that says the same takes the deposit back.';

ALTER TABLE work ADD COLUMN told_at timestamptz;
COMMENT ON COLUMN work.told_at IS 'Of a deposit''s watch: when the gateway wrote the newest notice that the account waits and that proved itself by the payment''s secret.';

-- A deposit that was taken back in error and is booked again bears the same key twice, once reversed.
DROP INDEX captures_one_per_transaction;
CREATE UNIQUE INDEX captures_one_per_transaction ON captures (transaction_key) WHERE transaction_key IS NOT NULL AND reversed_at IS NULL;
CREATE INDEX captures_of_transaction ON captures (transaction_key) WHERE transaction_key IS NOT NULL;
COMMENT ON TABLE captures IS 'Money taken. A payment has several only when a deposit fell back and came again, or was taken back in error.';

ALTER TABLE mirror ADD COLUMN waiting_since timestamptz;
COMMENT ON COLUMN mirror.waiting_since IS 'Of a capture: since when the list shows its row without money, as of an account that waits; NULL when it does not.';
CREATE INDEX mirror_waiting ON mirror (waiting_since) WHERE waiting_since IS NOT NULL;

-- A row without money explains for a while that the list lacks a deposit of ours.
-- +goose StatementBegin
CREATE FUNCTION audit_dirty_fallen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_dirty (subject, key, payment_key)
    SELECT 'capture', c.payment_key, c.payment_key FROM captures c WHERE c.payment_key = NEW.payment_key AND c.reversed_at IS NULL;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER mirror_dirty_fallen AFTER INSERT ON mirror FOR EACH ROW
    WHEN (NEW.kind = 'none') EXECUTE FUNCTION audit_dirty_fallen();
