-- +goose Up

-- The journal as evidence: cut into sections at the end of each business day, each section sealed by a signed head that
-- names the one before, and account totals per section, so that a balance needs no walk through the history.
-- Safe on a live table: the tables are new; the check of accounts only widens; the index is built while the journal is
-- still small.

CREATE TABLE journal_sections (
    day            date PRIMARY KEY,
    from_id        bigint NOT NULL CONSTRAINT journal_sections_from_not_negative CHECK (from_id >= 0),
    up_to_id       bigint NOT NULL CONSTRAINT journal_sections_forward CHECK (up_to_id >= from_id),
    transactions   bigint NOT NULL CONSTRAINT journal_sections_count CHECK (transactions >= 0),
    recorded_first timestamptz,
    recorded_last  timestamptz,
    cut_at         timestamptz NOT NULL,
    CONSTRAINT journal_sections_recorded CHECK ((transactions > 0) = (recorded_first IS NOT NULL AND recorded_last IS NOT NULL))
);
COMMENT ON TABLE journal_sections IS 'The journal cut at the end of each business day: transaction ids above from_id, up to and with up_to_id. No id in a section is ever filled later.';
COMMENT ON COLUMN journal_sections.day IS 'The business day that had ended; the section also holds what was recorded between its end and the cut.';
COMMENT ON COLUMN journal_sections.recorded_first IS 'The earliest recorded_at in the section, and below the latest: they tell what a balance as known at an instant must read.';

CREATE TABLE journal_balances (
    day         date NOT NULL REFERENCES journal_sections (day),
    occurred_on date NOT NULL,
    account     text NOT NULL,
    currency    text NOT NULL,
    debits      bigint NOT NULL CONSTRAINT journal_balances_debits CHECK (debits >= 0),
    credits     bigint NOT NULL CONSTRAINT journal_balances_credits CHECK (credits >= 0),
    PRIMARY KEY (day, occurred_on, account, currency)
);
COMMENT ON TABLE journal_balances IS 'What a section moves per account, by the Korean day on which it happened. Sums of the entries, checked against them by daesa verify.';

CREATE TABLE journal_heads (
    sequence      bigint PRIMARY KEY CONSTRAINT journal_heads_from_one CHECK (sequence >= 1),
    day           date NOT NULL CONSTRAINT journal_heads_one_per_day UNIQUE REFERENCES journal_sections (day),
    from_id       bigint NOT NULL,
    up_to_id      bigint NOT NULL CONSTRAINT journal_heads_forward CHECK (up_to_id >= from_id),
    transactions  bigint NOT NULL,
    entries       bigint NOT NULL,
    currencies    text[] NOT NULL,
    debits        bigint[] NOT NULL CONSTRAINT journal_heads_debit_per_currency CHECK (cardinality(debits) = cardinality(currencies)),
    content       bytea NOT NULL CONSTRAINT journal_heads_content_whole CHECK (length(content) = 32),
    marks         bytea NOT NULL CONSTRAINT journal_heads_marks_whole CHECK (length(marks) = 32),
    previous      bytea NOT NULL CONSTRAINT journal_heads_previous_whole CHECK (length(previous) = 32),
    hash          bytea NOT NULL CONSTRAINT journal_heads_hash_whole CHECK (length(hash) = 32),
    key_id        text NOT NULL,
    signature     bytea NOT NULL CONSTRAINT journal_heads_signature_whole CHECK (length(signature) = 64),
    sealed_at     timestamptz NOT NULL
);
COMMENT ON TABLE journal_heads IS 'One signed head per business day, each over the one before: docs/journal.md says byte by byte over what.';
COMMENT ON COLUMN journal_heads.debits IS 'Sum of the debits per currency, in the order of currencies.';
COMMENT ON COLUMN journal_heads.content IS 'SHA-256 over the hashes of the section''s transactions in the order of their ids.';
COMMENT ON COLUMN journal_heads.marks IS 'SHA-256 over the section''s marks.';
COMMENT ON COLUMN journal_heads.previous IS 'Hash of the head before; zeros before the first.';
COMMENT ON COLUMN journal_heads.key_id IS 'Which key signed: the first 16 hexadecimal digits of the SHA-256 of the public key.';

CREATE TABLE journal_marks (
    sequence bigint NOT NULL REFERENCES journal_heads (sequence) DEFERRABLE INITIALLY DEFERRED,
    part     integer NOT NULL,
    marks    bytea NOT NULL,
    PRIMARY KEY (sequence, part)
);
COMMENT ON TABLE journal_marks IS 'Id and the beginning of the hash of every sealed transaction: they tell which one was changed when a head no longer fits.';

CREATE TRIGGER journal_sections_append_only BEFORE UPDATE OR DELETE ON journal_sections
    FOR EACH ROW EXECUTE FUNCTION journal_is_append_only();
CREATE TRIGGER journal_balances_append_only BEFORE UPDATE OR DELETE ON journal_balances
    FOR EACH ROW EXECUTE FUNCTION journal_is_append_only();
CREATE TRIGGER journal_heads_append_only BEFORE UPDATE OR DELETE ON journal_heads
    FOR EACH ROW EXECUTE FUNCTION journal_is_append_only();
CREATE TRIGGER journal_marks_append_only BEFORE UPDATE OR DELETE ON journal_marks
    FOR EACH ROW EXECUTE FUNCTION journal_is_append_only();
CREATE TRIGGER journal_sections_no_truncate BEFORE TRUNCATE ON journal_sections
    FOR EACH STATEMENT EXECUTE FUNCTION journal_is_append_only();
CREATE TRIGGER journal_balances_no_truncate BEFORE TRUNCATE ON journal_balances
    FOR EACH STATEMENT EXECUTE FUNCTION journal_is_append_only();
CREATE TRIGGER journal_heads_no_truncate BEFORE TRUNCATE ON journal_heads
    FOR EACH STATEMENT EXECUTE FUNCTION journal_is_append_only();
CREATE TRIGGER journal_marks_no_truncate BEFORE TRUNCATE ON journal_marks
    FOR EACH STATEMENT EXECUTE FUNCTION journal_is_append_only();

-- What happened on the day that a balance ends in.
CREATE INDEX journal_by_occurrence ON journal_transactions (occurred_at);

-- Settlements will move money from the gateway to the bank, less its fees and the tax on them.
ALTER TABLE journal_entries DROP CONSTRAINT journal_account_known;
ALTER TABLE journal_entries ADD CONSTRAINT journal_account_known CHECK (account IN
    ('gateway_receivable', 'sales', 'refunds', 'suspense', 'fees', 'vat', 'bank',
     'credits_issued', 'customer_credits', 'credits_used'));
