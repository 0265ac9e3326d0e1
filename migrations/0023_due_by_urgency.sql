-- +goose Up

-- What only notices claim has an index of its own, and so has what is parked: however much of it is due, what is in doubt is
-- found without reading past it. Each row of open work is in one of the three.
-- Safe on a live table: the three are built in one reading of the work each, a second for a million rows; meanwhile work is
-- read and not written.

DROP INDEX work_due;
CREATE INDEX work_due ON work (due_at) WHERE closed_at IS NULL AND kind NOT IN ('cancel_claimed', 'parked');
CREATE INDEX work_due_claimed ON work (due_at) WHERE closed_at IS NULL AND kind = 'cancel_claimed';
CREATE INDEX work_due_parked ON work (due_at) WHERE closed_at IS NULL AND kind = 'parked';
