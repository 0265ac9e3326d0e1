-- +goose Up

-- Differences that a person accepted beside the sum are a line of their own, and rows of the closed day.
-- Safe on a live table: the checks of day_rows only widen, and the index holds what people accepted.

ALTER TABLE day_rows
    DROP CONSTRAINT day_rows_movement_known,
    ADD CONSTRAINT day_rows_movement_known CHECK (movement IN ('capture', 'cancel', '')) NOT VALID,
    DROP CONSTRAINT day_rows_standing_known,
    ADD CONSTRAINT day_rows_standing_known CHECK (standing IN
        ('applied', 'pending', 'accepted', 'not_yet_listed', 'accepted_beside', 'breaks')) NOT VALID;
COMMENT ON COLUMN day_rows.movement IS 'Empty: nobody can tell, of a row that cannot be read and that a person accepted.';

CREATE INDEX mismatches_accepted_contradictions ON mismatches (mismatch_id)
    WHERE resolved_as = 'accepted' AND transaction_key IS NOT NULL AND kind IN ('history_changed', 'quarantined', 'unrecognized_status', 'journal_differs');

-- What nobody can fix and was resolved as fixed is open again: it ends by itself where the list reads well by now.
UPDATE mismatches
SET status = 'open', resolved_at = NULL, resolved_as = NULL, resolved_by = NULL, note = '', incident_id = NULL,
    revision = revision + 1, changed_at = now(), changed_by = 'system', remark = 'nobody can fix it: open again'
WHERE resolved_as = 'fixed' AND transaction_key IS NOT NULL AND kind IN ('history_changed', 'quarantined', 'unrecognized_status');

-- What was accepted until now is judged again, and its days are closed again.
INSERT INTO audit_dirty (subject, key, payment_key)
SELECT DISTINCT s.subject, s.key, COALESCE(m.payment_key, '')
FROM mismatches m
CROSS JOIN LATERAL (VALUES ('cancel', m.transaction_key), ('capture', m.payment_key)) AS s (subject, key)
WHERE m.resolved_as = 'accepted' AND s.key IS NOT NULL;
INSERT INTO audit_dirty (subject, key, payment_key)
SELECT DISTINCT 'day', to_char(COALESCE((SELECT g.at FROM mirror g WHERE g.transaction_key = m.transaction_key),
    CASE WHEN m.gateway ->> 'at' ~ '^2[0-9]{3}-' THEN (m.gateway ->> 'at')::timestamptz END,
    m.opened_at) AT TIME ZONE 'Asia/Seoul', 'YYYY-MM-DD'), ''
FROM mismatches m
WHERE m.resolved_as = 'accepted' AND m.transaction_key IS NOT NULL AND m.kind IN ('history_changed', 'quarantined', 'unrecognized_status');
