-- +goose Up

-- The keys of the merchant's servers stood in a setting that nobody could change without a restart. They are kept here now, as
-- digests, each for what it is needed for. Safe on a live table: the table is new, and the check only widens.

CREATE TABLE api_keys (
    key_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text NOT NULL CONSTRAINT api_keys_name_can_stand_in_a_trail CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$'),
    prefix       text NOT NULL CONSTRAINT api_keys_prefix_is_one UNIQUE
        CONSTRAINT api_keys_prefix_form CHECK (prefix ~ '^daesa_[a-z2-7]{8}$'),
    digest       bytea NOT NULL CONSTRAINT api_keys_digest_is_one UNIQUE
        CONSTRAINT api_keys_digest_is_sha256 CHECK (octet_length(digest) = 32),
    scopes       text[] NOT NULL CONSTRAINT api_keys_scopes_known
        CHECK (cardinality(scopes) > 0 AND scopes <@ ARRAY['money', 'read', 'books']),
    made_at      timestamptz NOT NULL,
    made_by      text NOT NULL,
    ends_at      timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz
);
CREATE UNIQUE INDEX api_keys_one_is_current ON api_keys (lower(name)) WHERE ends_at IS NULL AND revoked_at IS NULL;
COMMENT ON TABLE api_keys IS 'Keys of the merchant''s servers, one row for each secret. Never deleted: trails name them.';
COMMENT ON COLUMN api_keys.name IS 'Who the key is; those that took its place at a rotation have the same.';
COMMENT ON COLUMN api_keys.prefix IS 'How the key begins: to find it by, no secret.';
COMMENT ON COLUMN api_keys.digest IS 'SHA-256 of the key, which has 256 random bits and is kept nowhere.';
COMMENT ON COLUMN api_keys.ends_at IS 'Another took its place; it lets in until then.';
COMMENT ON COLUMN api_keys.last_used_at IS 'To about two minutes.';

ALTER TABLE deeds DROP CONSTRAINT deeds_action_known;
ALTER TABLE deeds ADD CONSTRAINT deeds_action_known CHECK (action IN
    ('account_made', 'roles_set', 'password_given', 'password_chosen', 'account_disabled', 'account_enabled',
     'signed_in', 'sign_in_refused', 'signed_out', 'report_taken', 'gateway_asked',
     'key_made', 'key_rotated', 'key_revoked')) NOT VALID;
ALTER TABLE deeds VALIDATE CONSTRAINT deeds_action_known;
COMMENT ON COLUMN deeds.subject IS 'The account, key, day, order or mismatch that it was done with.';
