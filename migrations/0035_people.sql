-- +goose Up

-- Until now whoever changed something was the operating system's user or an API key. The pages let people in by name and
-- password: their accounts, their sessions, and the trail of what they did and looked at. Safe on a live table: all are new.

CREATE TABLE accounts (
    account_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text NOT NULL CONSTRAINT accounts_name_can_stand_in_a_trail CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$'),
    roles        text[] NOT NULL CONSTRAINT accounts_roles_known
        CHECK (cardinality(roles) > 0 AND roles <@ ARRAY['viewer', 'finance', 'approver', 'operator']),
    password     text NOT NULL CONSTRAINT accounts_password_is_a_hash CHECK (password LIKE '$argon2id$%'),
    must_change  boolean NOT NULL,
    epoch        integer NOT NULL DEFAULT 1,
    failures     integer NOT NULL DEFAULT 0 CONSTRAINT accounts_failures_not_negative CHECK (failures >= 0),
    locked_until timestamptz,
    disabled_at  timestamptz,
    signed_in_at timestamptz,
    created_at   timestamptz NOT NULL,
    created_by   text NOT NULL
);
CREATE UNIQUE INDEX accounts_name_is_one ON accounts (lower(name));
COMMENT ON TABLE accounts IS 'Who may come in through the pages. Never deleted: trails name them.';
COMMENT ON COLUMN accounts.password IS 'argon2id in the PHC string format, with its own cost and salt.';
COMMENT ON COLUMN accounts.must_change IS 'The password was given by an operator and lets in only to be changed.';
COMMENT ON COLUMN accounts.epoch IS 'Sessions of an earlier epoch are over.';
COMMENT ON COLUMN accounts.failures IS 'Attempts to sign in since the last that succeeded, counted before the password is looked at.';

CREATE TABLE sessions (
    token  text PRIMARY KEY,
    data   bytea NOT NULL,
    expiry timestamptz NOT NULL
);
CREATE INDEX sessions_expiry ON sessions (expiry);
COMMENT ON TABLE sessions IS 'Who is signed in. The columns are those of the session store.';
COMMENT ON COLUMN sessions.token IS 'SHA-256 of what the browser has.';

CREATE TABLE deeds (
    deed_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL,
    actor   text NOT NULL CONSTRAINT deeds_has_actor CHECK (actor <> ''),
    action  text NOT NULL CONSTRAINT deeds_action_known CHECK (action IN
        ('account_made', 'roles_set', 'password_given', 'password_chosen', 'account_disabled', 'account_enabled',
         'signed_in', 'sign_in_refused', 'signed_out', 'report_taken', 'gateway_asked')),
    subject text NOT NULL,
    detail  text NOT NULL,
    source  text NOT NULL
);
COMMENT ON TABLE deeds IS 'What people did and looked at; rows are never changed or deleted.';
COMMENT ON COLUMN deeds.actor IS 'os:<user>, api:<key> or person:<account>.';
COMMENT ON COLUMN deeds.subject IS 'The account, day, order or mismatch that it was done with.';
COMMENT ON COLUMN deeds.source IS 'The address it came from; empty for commands.';

-- +goose StatementBegin
CREATE FUNCTION deeds_are_only_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what people did is not changed or deleted'
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'deeds_are_only_added';
END $$;
-- +goose StatementEnd
CREATE TRIGGER deeds_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON deeds
    FOR EACH STATEMENT EXECUTE FUNCTION deeds_are_only_added();

COMMENT ON COLUMN mismatch_trail.actor IS 'system, os:<user>, api:<key> or person:<account>; db:<role> for a change made by hand in the database.';
