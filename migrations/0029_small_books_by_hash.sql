-- +goose Up

-- Two indexes hold next to nothing: cancels that moved no money, and payments whose captures do not agree. Each is asked for
-- every payment that changed. As B-trees they cost nearly what the large index beside them does, so that the planner took that
-- one on long histories: a page more for each question, and one more with each level. By hash the small one is always cheaper.
-- Safe on a live table: the cancels are read once, a second for a million of them; meanwhile they are read and not written.

DROP INDEX audit_judged_captures;
CREATE INDEX audit_judged_captures ON audit_judged USING hash (payment_key) WHERE subject = 'capture';

DROP INDEX cancels_void_of_payment;
CREATE INDEX cancels_void_of_payment ON cancels USING hash (payment_key) WHERE amount = 0;
