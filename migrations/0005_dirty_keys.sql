-- +goose Up

-- An audit that costs what changed: which keys changed, what each last came to, and the sums of that.
-- Safe on a live table: the new tables are empty, the triggers write to them only, and the partial indexes cover a
-- tenth of their tables. The first audit finds no state and computes everything once.

CREATE TABLE audit_dirty (
    dirty_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subject     text NOT NULL CONSTRAINT audit_dirty_subject_known CHECK (subject IN ('cancel', 'capture', 'everything')),
    key         text NOT NULL,
    payment_key text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 5000);
COMMENT ON TABLE audit_dirty IS 'Keys whose comparison may come to something else now, written by triggers in the transaction of the change. An audit takes what it can see; no key is unique, so no change ever waits for another.';
COMMENT ON COLUMN audit_dirty.key IS 'The transaction key of a cancel; of captures the payment key.';
COMMENT ON COLUMN audit_dirty.payment_key IS 'What else to compare anew: the voids of the payment and what was open about its captures.';

CREATE TABLE audit_judged (
    subject       text NOT NULL CONSTRAINT audit_judged_subject_known CHECK (subject IN ('cancel', 'capture')),
    key           text NOT NULL,
    payment_key   text NOT NULL,
    order_id      text NOT NULL,
    day           date,
    currency      text,
    amount        bigint,
    parts         jsonb,
    entries       jsonb,
    open_line     text,
    open_currency text,
    since         timestamptz,
    recheck_at    timestamptz,
    recheck_as_of timestamptz,
    PRIMARY KEY (subject, key),
    CONSTRAINT audit_judged_plain_or_parts CHECK ((parts IS NULL) = (day IS NOT NULL AND currency IS NOT NULL AND amount IS NOT NULL)),
    CONSTRAINT audit_judged_open_is_dated CHECK ((open_line IS NULL) = (since IS NULL) AND (open_line IS NULL) = (open_currency IS NULL))
);
COMMENT ON TABLE audit_judged IS 'What each cancel last came to in the comparison, so that sums move by difference. Of captures only those that do not agree.';
COMMENT ON COLUMN audit_judged.day IS 'Set with currency and amount where both books simply agree: the Korean business day of the mirror''s row.';
COMMENT ON COLUMN audit_judged.parts IS 'Its share of each line of each day, where that is more than simply agreeing.';
COMMENT ON COLUMN audit_judged.entries IS 'How the statement lists it.';
COMMENT ON COLUMN audit_judged.open_line IS 'The line it is listed under; breaks before any other.';
COMMENT ON COLUMN audit_judged.recheck_at IS 'When the clock alone makes it something else.';
COMMENT ON COLUMN audit_judged.recheck_as_of IS 'It becomes something else once the list was read past this instant.';
CREATE INDEX audit_judged_of_order ON audit_judged (order_id) WHERE subject = 'cancel';
CREATE INDEX audit_judged_open ON audit_judged (open_line, open_currency, since, key COLLATE "C") WHERE open_line IS NOT NULL;
CREATE INDEX audit_judged_by_clock ON audit_judged (recheck_at) WHERE recheck_at IS NOT NULL;
CREATE INDEX audit_judged_by_list ON audit_judged (recheck_as_of) WHERE recheck_as_of IS NOT NULL;
CREATE INDEX audit_judged_captures ON audit_judged (key) WHERE subject = 'capture';

CREATE TABLE audit_totals (
    day      date NOT NULL,
    line     text NOT NULL,
    currency text NOT NULL,
    count    bigint NOT NULL,
    amount   bigint NOT NULL,
    entries  bigint NOT NULL,
    PRIMARY KEY (day, line, currency)
) WITH (fillfactor = 50);
COMMENT ON TABLE audit_totals IS 'The sums of audit_judged per business day, moved by difference. Closing runs and the nightly run compute them in full and compare.';
COMMENT ON COLUMN audit_totals.line IS 'A line of the statement, or what else it counts: the gateway''s cancels, ours, open work, orders, captures that do not agree.';
COMMENT ON COLUMN audit_totals.entries IS 'How many entries the line has; its count may be another.';

CREATE TABLE audit_state (
    only_row   boolean PRIMARY KEY DEFAULT true CONSTRAINT audit_state_is_one_row CHECK (only_row),
    basis      text NOT NULL,
    judged_at  timestamptz NOT NULL,
    as_of      timestamptz NOT NULL,
    rebuilt_at timestamptz NOT NULL
);
COMMENT ON TABLE audit_state IS 'What the running sums were computed by; one row. Where it differs from now, everything is computed anew.';
COMMENT ON COLUMN audit_state.basis IS 'The settings that decide what counts: rules, opening, list lag, where the list begins.';
COMMENT ON COLUMN audit_state.judged_at IS 'The instant of the last run. A clock set back from it proves nothing by difference.';
COMMENT ON COLUMN audit_state.as_of IS 'How far the list was read then.';

-- What an audit looks up by key, small enough to stay shallow: cancels in the list, voids, accepted differences.
CREATE INDEX mirror_cancels ON mirror (transaction_key) WHERE kind = 'cancel' AND NOT is_foreign;
CREATE INDEX mirror_cancels_of_payment ON mirror (payment_key) WHERE kind = 'cancel';
CREATE INDEX cancels_void_of_payment ON cancels (payment_key) WHERE amount = 0;
CREATE INDEX mismatches_accepted_of_transaction ON mismatches (transaction_key) WHERE resolved_as = 'accepted' AND transaction_key IS NOT NULL;
CREATE INDEX mismatches_accepted_of_payment ON mismatches (payment_key) WHERE resolved_as = 'accepted' AND payment_key IS NOT NULL;

-- The triggers: whatever writes one of the three sets, or what they are judged by, says so in its own transaction.

-- +goose StatementBegin
CREATE FUNCTION audit_dirty_mirror() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.kind = 'capture' THEN
            INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('capture', NEW.payment_key, NEW.payment_key);
        END IF;
        IF NEW.kind <> 'capture' OR NEW.is_foreign THEN
            INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('cancel', NEW.transaction_key, NEW.payment_key);
        END IF;
        RETURN NULL;
    END IF;
    INSERT INTO audit_dirty (subject, key, payment_key)
    VALUES ('cancel', OLD.transaction_key, OLD.payment_key), ('capture', OLD.payment_key, OLD.payment_key);
    IF TG_OP = 'UPDATE' AND (NEW.transaction_key, NEW.payment_key) IS DISTINCT FROM (OLD.transaction_key, OLD.payment_key) THEN
        INSERT INTO audit_dirty (subject, key, payment_key)
        VALUES ('cancel', NEW.transaction_key, NEW.payment_key), ('capture', NEW.payment_key, NEW.payment_key);
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION audit_dirty_cancels() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('cancel', OLD.transaction_key, OLD.payment_key);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('cancel', NEW.transaction_key, NEW.payment_key);
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION audit_dirty_captures() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('capture', OLD.payment_key, OLD.payment_key);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('capture', NEW.payment_key, NEW.payment_key);
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION audit_dirty_work() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        IF OLD.transaction_key IS NOT NULL THEN
            INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('cancel', OLD.transaction_key, OLD.payment_key);
        END IF;
        IF OLD.kind = 'confirm_unknown' THEN
            INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('capture', OLD.payment_key, OLD.payment_key);
        END IF;
    END IF;
    IF TG_OP = 'INSERT' OR (TG_OP = 'UPDATE'
            AND (NEW.transaction_key, NEW.payment_key, NEW.kind) IS DISTINCT FROM (OLD.transaction_key, OLD.payment_key, OLD.kind)) THEN
        IF NEW.transaction_key IS NOT NULL THEN
            INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('cancel', NEW.transaction_key, NEW.payment_key);
        END IF;
        IF NEW.kind = 'confirm_unknown' THEN
            INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('capture', NEW.payment_key, NEW.payment_key);
        END IF;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION audit_dirty_mismatches() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO audit_dirty (subject, key, payment_key)
        SELECT s.subject, s.key, COALESCE(OLD.payment_key, '')
        FROM (VALUES ('cancel', OLD.transaction_key), ('capture', OLD.payment_key)) AS s (subject, key)
        WHERE s.key IS NOT NULL;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO audit_dirty (subject, key, payment_key)
        SELECT s.subject, s.key, COALESCE(NEW.payment_key, '')
        FROM (VALUES ('cancel', NEW.transaction_key), ('capture', NEW.payment_key)) AS s (subject, key)
        WHERE s.key IS NOT NULL;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION audit_dirty_payments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('capture', NEW.payment_key, NEW.payment_key);
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION audit_dirty_everything() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('everything', '', '');
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER mirror_dirty_new AFTER INSERT ON mirror FOR EACH ROW
    WHEN (NEW.kind <> 'none' OR NEW.is_foreign) EXECUTE FUNCTION audit_dirty_mirror();
-- A row that is merely read again says nothing new, and most rows of most reads are that.
CREATE TRIGGER mirror_dirty_changed AFTER UPDATE ON mirror FOR EACH ROW
    WHEN ((OLD.transaction_key, OLD.payment_key, OLD.order_id, OLD.kind, OLD.currency, OLD.amount, OLD.at, OLD.is_foreign, OLD.missing_since)
        IS DISTINCT FROM (NEW.transaction_key, NEW.payment_key, NEW.order_id, NEW.kind, NEW.currency, NEW.amount, NEW.at, NEW.is_foreign, NEW.missing_since))
    EXECUTE FUNCTION audit_dirty_mirror();
CREATE TRIGGER mirror_dirty_gone AFTER DELETE ON mirror FOR EACH ROW EXECUTE FUNCTION audit_dirty_mirror();

CREATE TRIGGER cancels_dirty AFTER INSERT OR DELETE ON cancels FOR EACH ROW EXECUTE FUNCTION audit_dirty_cancels();
CREATE TRIGGER cancels_dirty_changed AFTER UPDATE ON cancels FOR EACH ROW
    WHEN ((OLD.transaction_key, OLD.payment_key, OLD.order_id, OLD.currency, OLD.amount, OLD.canceled_at)
        IS DISTINCT FROM (NEW.transaction_key, NEW.payment_key, NEW.order_id, NEW.currency, NEW.amount, NEW.canceled_at))
    EXECUTE FUNCTION audit_dirty_cancels();

CREATE TRIGGER captures_dirty AFTER INSERT OR DELETE ON captures FOR EACH ROW EXECUTE FUNCTION audit_dirty_captures();
CREATE TRIGGER captures_dirty_changed AFTER UPDATE ON captures FOR EACH ROW
    WHEN ((OLD.payment_key, OLD.transaction_key, OLD.currency, OLD.amount, OLD.captured_at, OLD.reversed_at)
        IS DISTINCT FROM (NEW.payment_key, NEW.transaction_key, NEW.currency, NEW.amount, NEW.captured_at, NEW.reversed_at))
    EXECUTE FUNCTION audit_dirty_captures();

CREATE TRIGGER work_dirty_new AFTER INSERT ON work FOR EACH ROW
    WHEN (NEW.closed_at IS NULL AND (NEW.transaction_key IS NOT NULL OR NEW.kind = 'confirm_unknown'))
    EXECUTE FUNCTION audit_dirty_work();
CREATE TRIGGER work_dirty_changed AFTER UPDATE ON work FOR EACH ROW
    WHEN ((OLD.kind, OLD.payment_key, OLD.order_id, OLD.transaction_key, OLD.currency, OLD.amount, OLD.opened_at, OLD.deadline,
            OLD.notice_attempt, OLD.notice_next_at, OLD.closed_at IS NULL)
        IS DISTINCT FROM (NEW.kind, NEW.payment_key, NEW.order_id, NEW.transaction_key, NEW.currency, NEW.amount, NEW.opened_at, NEW.deadline,
            NEW.notice_attempt, NEW.notice_next_at, NEW.closed_at IS NULL))
    EXECUTE FUNCTION audit_dirty_work();
CREATE TRIGGER work_dirty_gone AFTER DELETE ON work FOR EACH ROW
    WHEN (OLD.closed_at IS NULL) EXECUTE FUNCTION audit_dirty_work();

-- Only what a person accepted weighs in the comparison; an open mismatch is its result.
CREATE TRIGGER mismatches_dirty_new AFTER INSERT ON mismatches FOR EACH ROW
    WHEN (NEW.resolved_as = 'accepted') EXECUTE FUNCTION audit_dirty_mismatches();
CREATE TRIGGER mismatches_dirty_changed AFTER UPDATE ON mismatches FOR EACH ROW
    WHEN ((OLD.resolved_as = 'accepted' OR NEW.resolved_as = 'accepted')
        AND (OLD.resolved_as, OLD.kind, OLD.payment_key, OLD.transaction_key, OLD.currency, OLD.amount, OLD.detail)
            IS DISTINCT FROM (NEW.resolved_as, NEW.kind, NEW.payment_key, NEW.transaction_key, NEW.currency, NEW.amount, NEW.detail))
    EXECUTE FUNCTION audit_dirty_mismatches();
CREATE TRIGGER mismatches_dirty_gone AFTER DELETE ON mismatches FOR EACH ROW
    WHEN (OLD.resolved_as = 'accepted') EXECUTE FUNCTION audit_dirty_mismatches();

-- Whether a listed cancel is the void of an unpaid virtual account.
CREATE TRIGGER payments_dirty_new AFTER INSERT ON payments FOR EACH ROW
    WHEN (NEW.virtual_account) EXECUTE FUNCTION audit_dirty_payments();
CREATE TRIGGER payments_dirty_changed AFTER UPDATE ON payments FOR EACH ROW
    WHEN (OLD.virtual_account <> NEW.virtual_account) EXECUTE FUNCTION audit_dirty_payments();

-- A table that is emptied names no rows.
CREATE TRIGGER mirror_dirty_truncated AFTER TRUNCATE ON mirror FOR EACH STATEMENT EXECUTE FUNCTION audit_dirty_everything();
CREATE TRIGGER cancels_dirty_truncated AFTER TRUNCATE ON cancels FOR EACH STATEMENT EXECUTE FUNCTION audit_dirty_everything();
CREATE TRIGGER captures_dirty_truncated AFTER TRUNCATE ON captures FOR EACH STATEMENT EXECUTE FUNCTION audit_dirty_everything();
CREATE TRIGGER work_dirty_truncated AFTER TRUNCATE ON work FOR EACH STATEMENT EXECUTE FUNCTION audit_dirty_everything();
CREATE TRIGGER mismatches_dirty_truncated AFTER TRUNCATE ON mismatches FOR EACH STATEMENT EXECUTE FUNCTION audit_dirty_everything();
