-- +goose Up

-- A business day can be marked as changed by itself: a mismatch about one of its transactions opens or ends, and no row of
-- either book changes. Safe on a live table: the constraint is checked against a table that each audit empties.

ALTER TABLE audit_dirty DROP CONSTRAINT audit_dirty_subject_known;
ALTER TABLE audit_dirty ADD CONSTRAINT audit_dirty_subject_known CHECK (subject IN ('cancel', 'capture', 'day', 'everything'));
COMMENT ON COLUMN audit_dirty.key IS 'The transaction key of a cancel; of captures the payment key; of a day its date.';
