-- +goose Up

-- What each audit looks up by one key, in one page at any length: a cancel in the list, the money of a payment, what a
-- cancel last came to. As B-trees they are a page dearer for each level, and have one more at ten million payments. The
-- cancels in the list are read by their key and never in its order, so that they need no B-tree; the other two keep their
-- primary keys. Half-filled buckets hardly ever overflow, also while only some of them have been split.
-- Safe on a live table: some ten seconds for ten million captures; meanwhile they and the list are read and not written.

DROP INDEX mirror_cancels;
CREATE INDEX mirror_cancels ON mirror USING hash (transaction_key) WITH (fillfactor = 50) WHERE kind = 'cancel' AND NOT is_foreign;
CREATE INDEX captures_by_payment ON captures USING hash (payment_key) WITH (fillfactor = 50);
CREATE INDEX audit_judged_cancels ON audit_judged USING hash (key) WITH (fillfactor = 50) WHERE subject = 'cancel';
