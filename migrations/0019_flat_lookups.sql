-- +goose Up

-- The list's rows of one payment in one page, however many rows there are: a B-tree grows a level with the history, and
-- each look-up a page with it. Half-filled buckets hardly ever overflow, also while only some of them have been split.
-- Safe on a live table: the new index is built before the old one goes, about twenty seconds for ten million rows; meanwhile
-- the list is read and not written.

CREATE INDEX mirror_by_payment ON mirror USING hash (payment_key) WITH (fillfactor = 50);
DROP INDEX mirror_of_payment;
