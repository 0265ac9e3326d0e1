-- +goose Up

-- Whose a capture is: both books may name an order of it, and only the payment's row has ours. So that an audit of a minute
-- looks nothing more up for what agrees, whoever writes one of the two rows finds out whether the other says something
-- else, and marks just that payment ('order'); what agrees costs one look-up more when a capture is listed or booked.
-- Safe on a live table: functions, triggers, a check that only widens on a table that is emptied each minute, and a few
-- mismatches. What is there already is compared by the first audit, which compares everything.

ALTER TABLE audit_dirty DROP CONSTRAINT audit_dirty_subject_known;
ALTER TABLE audit_dirty ADD CONSTRAINT audit_dirty_subject_known CHECK (subject IN ('cancel', 'capture', 'order', 'day', 'everything'));
COMMENT ON COLUMN audit_dirty.key IS 'The transaction key of a cancel; of captures, and of what may be another order''s, the payment key; of a day its date.';

-- +goose StatementBegin
CREATE FUNCTION audit_dirty_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'payments' OR EXISTS (
            SELECT 1 FROM mirror g
            WHERE g.payment_key = NEW.payment_key AND g.kind = 'capture' AND g.order_id <> ''
                AND EXISTS (SELECT 1 FROM payments p WHERE p.payment_key = g.payment_key AND p.order_id <> g.order_id OFFSET 0)) THEN
        INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('order', NEW.payment_key, NEW.payment_key);
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER mirror_dirty_order AFTER INSERT ON mirror FOR EACH ROW
    WHEN (NEW.kind = 'capture') EXECUTE FUNCTION audit_dirty_order();
CREATE TRIGGER mirror_dirty_order_changed AFTER UPDATE ON mirror FOR EACH ROW
    WHEN ((OLD.payment_key, OLD.order_id, OLD.kind) IS DISTINCT FROM (NEW.payment_key, NEW.order_id, NEW.kind))
    EXECUTE FUNCTION audit_dirty_order();
CREATE TRIGGER captures_dirty_order AFTER INSERT ON captures FOR EACH ROW EXECUTE FUNCTION audit_dirty_order();
CREATE TRIGGER captures_dirty_order_changed AFTER UPDATE ON captures FOR EACH ROW
    WHEN (OLD.payment_key <> NEW.payment_key) EXECUTE FUNCTION audit_dirty_order();
CREATE TRIGGER payments_dirty_order AFTER UPDATE ON payments FOR EACH ROW
    WHEN (OLD.order_id <> NEW.order_id) EXECUTE FUNCTION audit_dirty_order();

-- What a person accepted of a capture that the list has otherwise covers the money of both sides. The evidence of before
-- had none of it, only the words: "the capture is 1000 at the gateway and 900 here, minor units".
UPDATE mismatches m
SET books = jsonb_build_object('present', true, 'amount',
        CASE WHEN m.currency = 'USD' THEN to_char(w.minor::numeric / 100, 'FM999999999999999990.00') ELSE w.minor END, 'currency', m.currency),
    revision = m.revision + 1, changed_at = now(), changed_by = 'system', remark = 'our money, from the words'
FROM (SELECT mismatch_id, substring(detail FROM '^the capture is [0-9]+ at the gateway and ([0-9]+) here, minor units$') AS minor
    FROM mismatches WHERE kind = 'amount_differs' AND books IS NULL) w
WHERE w.mismatch_id = m.mismatch_id AND w.minor IS NOT NULL;
UPDATE mismatches m
SET books = jsonb_build_object('present', true, 'currency', w.currency),
    revision = m.revision + 1, changed_at = now(), changed_by = 'system', remark = 'our currency, from the words'
FROM (SELECT mismatch_id, substring(detail FROM '^the capture is in [A-Z]{3} at the gateway and in ([A-Z]{3}) here$') AS currency
    FROM mismatches WHERE kind = 'currency_differs' AND books IS NULL) w
WHERE w.mismatch_id = m.mismatch_id AND w.currency IS NOT NULL;
