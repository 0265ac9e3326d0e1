-- +goose Up

-- How far the bookings of a signed statement reach in the journal: by that the head that seals them all can be named, also
-- one that is made after the signature.
-- Safe on a live table: a nullable column is added without a rewrite, and the indexes are over one row a day.

ALTER TABLE day_signoffs
    ADD COLUMN booked_up_to bigint CONSTRAINT day_signoffs_booked_up_to_not_negative CHECK (booked_up_to >= 0);
COMMENT ON COLUMN day_signoffs.booked_up_to IS 'The newest journal transaction among the bookings of the signed statement: the first head with up_to_id not below it seals them all. 0: it has none; NULL: signed when this was not kept.';
COMMENT ON COLUMN day_signoffs.journal_head IS 'Hash of the newest journal head when it was signed; NULL where there was none.';
CREATE INDEX journal_heads_by_end ON journal_heads (up_to_id, sequence);
CREATE INDEX journal_heads_by_hash ON journal_heads (encode(hash, 'hex'));
