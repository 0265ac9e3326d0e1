-- +goose Up

-- The timeline of one order: everything that names the order or one of its payments is found by index.
-- Safe on a live table: an index only; the tables are small when this arrives.

CREATE INDEX cancel_requests_of_payment ON cancel_requests (payment_key);
CREATE INDEX mirror_of_order ON mirror (order_id);
