-- +goose Up

-- What decides whose money a row of the gateway's list is, what of it lies before our books, and how late it may appear
-- stood in each command's own environment: a shell that lacked one of them rewrote the mirror by other rules than the
-- service's. Until a service of this version has started, nothing stands here.
CREATE TABLE books_settings (
    only_row      boolean PRIMARY KEY DEFAULT true CONSTRAINT books_settings_is_one_row CHECK (only_row),
    order_pattern text NOT NULL,
    opening_at    timestamptz,
    list_lag      interval NOT NULL CONSTRAINT books_settings_lag_not_negative CHECK (list_lag >= '0'),
    set_at        timestamptz NOT NULL
);
COMMENT ON TABLE books_settings IS 'The settings that the service goes by; one row. Written by the service at its start and with each read of what is new. A command that writes is refused when it was told others.';
COMMENT ON COLUMN books_settings.order_pattern IS 'Regular expression of our order ids; empty: every order is ours.';
COMMENT ON COLUMN books_settings.opening_at IS 'What happened before belongs to the system before us; null: nothing does.';
COMMENT ON COLUMN books_settings.list_lag IS 'How late a row may appear in the list.';
