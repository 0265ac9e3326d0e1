-- +goose Up

-- The books: orders, payments, captures, cancels and the journal that proves them.
-- Safe on a live table: everything here is new.

CREATE TABLE orders (
    order_id    text PRIMARY KEY CONSTRAINT orders_id_form CHECK (order_id ~ '^[A-Za-z0-9_=-]{6,64}$'),
    status      text NOT NULL DEFAULT 'pending'
        CONSTRAINT orders_status_known CHECK (status IN ('pending', 'paid', 'partially_canceled', 'canceled', 'expired')),
    currency    text NOT NULL CONSTRAINT orders_currency_known CHECK (currency IN ('KRW', 'USD', 'JPY')),
    amount      bigint NOT NULL CONSTRAINT orders_amount_bounded CHECK (amount BETWEEN 1 AND 1000000000000),
    customer_id text CONSTRAINT orders_customer_bounded CHECK (length(customer_id) BETWEEN 1 AND 128),
    name        text NOT NULL DEFAULT '' CONSTRAINT orders_name_bounded CHECK (length(name) <= 100),
    credits     bigint NOT NULL DEFAULT 0 CONSTRAINT orders_credits_bounded CHECK (credits BETWEEN 0 AND 1000000000000),
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    CONSTRAINT orders_credits_need_customer CHECK (credits = 0 OR customer_id IS NOT NULL)
);
COMMENT ON TABLE orders IS 'What buyers owe. The amount comes from the merchant''s server and from nowhere else.';
COMMENT ON COLUMN orders.credits IS 'Credits granted to the customer when the order is paid. Bounded, so that no sum of them overflows.';
COMMENT ON COLUMN orders.expires_at IS 'Without a live payment by then the order expires.';
CREATE INDEX orders_expiring ON orders (expires_at) WHERE status = 'pending';

CREATE TABLE payments (
    payment_key       text PRIMARY KEY CONSTRAINT payments_key_form CHECK (payment_key ~ '^[A-Za-z0-9_=-]{1,200}$'),
    order_id          text NOT NULL REFERENCES orders (order_id),
    merchant_id       text NOT NULL DEFAULT '',
    status            text NOT NULL CONSTRAINT payments_status_known CHECK (status IN
        ('ready', 'confirming', 'unknown', 'failed', 'waiting_for_deposit', 'done', 'partially_canceled', 'canceled')),
    currency          text NOT NULL CONSTRAINT payments_currency_known CHECK (currency IN ('KRW', 'USD', 'JPY')),
    amount            bigint NOT NULL CONSTRAINT payments_amount_positive CHECK (amount > 0),
    captured          bigint NOT NULL DEFAULT 0,
    canceled          bigint NOT NULL DEFAULT 0,
    surplus           boolean NOT NULL DEFAULT false,
    attempt           integer NOT NULL DEFAULT 0 CONSTRAINT payments_attempt_not_negative CHECK (attempt >= 0),
    generation        integer NOT NULL DEFAULT 1 CONSTRAINT payments_generation_positive CHECK (generation >= 1),
    key_first_used_at timestamptz,
    intended_at       timestamptz,
    undecided_since   timestamptz,
    waiting_seen_at   timestamptz,
    virtual_account   boolean NOT NULL DEFAULT false,
    secret_digest     bytea,
    reason            text NOT NULL DEFAULT '' CONSTRAINT payments_reason_bounded CHECK (length(reason) <= 200),
    method            text NOT NULL DEFAULT '' CONSTRAINT payments_method_bounded CHECK (length(method) <= 100),
    credits_granted   bigint NOT NULL DEFAULT 0,
    credits_revoked   bigint NOT NULL DEFAULT 0,
    supplied          bigint,
    vat               bigint,
    tax_free          bigint,
    tax_exempt        bigint,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    CONSTRAINT payments_captured_within_amount CHECK (captured IN (0, amount)),
    CONSTRAINT payments_canceled_within_captured CHECK (canceled >= 0 AND canceled <= captured),
    CONSTRAINT payments_status_follows_money CHECK (CASE status
        WHEN 'done' THEN captured > 0 AND canceled = 0
        WHEN 'partially_canceled' THEN canceled > 0 AND canceled < captured
        WHEN 'canceled' THEN canceled = captured
        ELSE captured = 0 AND canceled = 0 END),
    CONSTRAINT payments_undecided_is_dated CHECK ((status IN ('confirming', 'unknown')) = (undecided_since IS NOT NULL)),
    CONSTRAINT payments_confirming_was_intended CHECK (status <> 'confirming' OR (attempt >= 1 AND intended_at IS NOT NULL)),
    CONSTRAINT payments_credits_bounded CHECK (credits_revoked >= 0 AND credits_revoked <= credits_granted)
);
COMMENT ON TABLE payments IS 'One row per payment key. Only the ledger''s Record, Intend and Release write it.';
COMMENT ON COLUMN payments.amount IS 'What was to be captured: the order''s amount, minor units.';
COMMENT ON COLUMN payments.captured IS 'Money taken and not fallen back (I2).';
COMMENT ON COLUMN payments.surplus IS 'Does not hold its order: another payment does, or the gateway has never known this one. Money for a held order waits in suspense.';
COMMENT ON COLUMN payments.attempt IS 'Counts confirm calls; compare-and-set on it makes one attempt own the row.';
COMMENT ON COLUMN payments.generation IS 'Numbers the gateway idempotency key; a new one only after a definite answer.';
COMMENT ON COLUMN payments.waiting_seen_at IS 'A paid virtual account was seen waiting once; a second sighting takes the deposit back.';
COMMENT ON COLUMN payments.secret_digest IS 'SHA-256 of the payment''s secret, to check deposit callbacks; the secret itself is not kept.';
COMMENT ON COLUMN payments.supplied IS 'The gateway''s own tax split of the balance, as last told.';
CREATE INDEX payments_of_order ON payments (order_id);
CREATE UNIQUE INDEX payments_one_live_per_order ON payments (order_id)
    WHERE status IN ('confirming', 'unknown', 'waiting_for_deposit', 'done', 'partially_canceled', 'canceled') AND NOT surplus;
CREATE INDEX payments_undecided ON payments (undecided_since) WHERE undecided_since IS NOT NULL;

CREATE TABLE captures (
    payment_key     text NOT NULL REFERENCES payments (payment_key),
    number          integer NOT NULL CONSTRAINT captures_number_positive CHECK (number >= 1),
    transaction_key text,
    currency        text NOT NULL,
    amount          bigint NOT NULL CONSTRAINT captures_amount_positive CHECK (amount > 0),
    captured_at     timestamptz NOT NULL,
    channel         text NOT NULL,
    recorded_at     timestamptz NOT NULL,
    reversed_at     timestamptz,
    PRIMARY KEY (payment_key, number)
);
COMMENT ON TABLE captures IS 'Money taken. A payment has several only when a deposit fell back and came again.';
COMMENT ON COLUMN captures.transaction_key IS 'NULL until the gateway names it: a payment object with cancels no longer shows it.';
CREATE UNIQUE INDEX captures_one_per_transaction ON captures (transaction_key) WHERE transaction_key IS NOT NULL;
CREATE UNIQUE INDEX captures_one_standing ON captures (payment_key) WHERE reversed_at IS NULL;

CREATE TABLE cancels (
    transaction_key text CONSTRAINT cancels_pkey PRIMARY KEY,
    payment_key     text NOT NULL REFERENCES payments (payment_key),
    order_id        text NOT NULL REFERENCES orders (order_id),
    currency        text NOT NULL,
    amount          bigint NOT NULL CONSTRAINT cancels_amount_not_negative CHECK (amount >= 0),
    tax_free        bigint,
    tax_exempt      bigint,
    reason          text NOT NULL DEFAULT '' CONSTRAINT cancels_reason_bounded CHECK (length(reason) <= 200),
    canceled_at     timestamptz NOT NULL,
    channel         text NOT NULL,
    recorded_at     timestamptz NOT NULL,
    credits_revoked bigint NOT NULL DEFAULT 0 CONSTRAINT cancels_credits_not_negative CHECK (credits_revoked >= 0)
);
COMMENT ON TABLE cancels IS 'One row per cancel that the gateway finished, keyed by its own transaction key (I1).';
COMMENT ON COLUMN cancels.amount IS 'Zero only for the void of an unpaid virtual account: counted on both sides, moving nothing.';
COMMENT ON COLUMN cancels.channel IS 'How we came to know: webhook, cancel, sweep, last_chance, …';
CREATE INDEX cancels_of_payment ON cancels (payment_key);
CREATE INDEX cancels_by_time ON cancels (canceled_at);

CREATE TABLE journal_transactions (
    transaction_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind           text NOT NULL CONSTRAINT journal_kind_known CHECK (kind IN
        ('capture', 'cancel', 'deposit_reversal', 'credit_grant', 'credit_spend', 'credit_revoke')),
    reference      text NOT NULL,
    payment_key    text,
    order_id       text,
    customer_id    text,
    occurred_at    timestamptz NOT NULL,
    recorded_at    timestamptz NOT NULL,
    written_by     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT journal_one_per_fact UNIQUE (kind, reference)
);
COMMENT ON TABLE journal_transactions IS 'Double-entry journal: one row per fact, never changed or deleted (I3).';
COMMENT ON COLUMN journal_transactions.reference IS 'What the fact is known by: a transaction key, a payment and capture number, a spend id.';
COMMENT ON COLUMN journal_transactions.written_by IS 'The database transaction that wrote it; entries may only be added by the same one.';
CREATE INDEX journal_of_payment ON journal_transactions (payment_key) WHERE payment_key IS NOT NULL;
CREATE INDEX journal_of_customer ON journal_transactions (customer_id) WHERE customer_id IS NOT NULL;

CREATE TABLE journal_entries (
    transaction_id bigint NOT NULL REFERENCES journal_transactions (transaction_id),
    line           integer NOT NULL CONSTRAINT journal_line_positive CHECK (line >= 1),
    account        text NOT NULL CONSTRAINT journal_account_known CHECK (account IN
        ('gateway_receivable', 'sales', 'refunds', 'suspense',
         'credits_issued', 'customer_credits', 'credits_used')),
    currency       text NOT NULL CONSTRAINT journal_currency_known CHECK (currency IN ('KRW', 'USD', 'JPY', 'CREDIT')),
    amount         bigint NOT NULL CONSTRAINT journal_amount_not_zero CHECK (amount <> 0),
    PRIMARY KEY (transaction_id, line)
);
COMMENT ON TABLE journal_entries IS 'Debits positive, credits negative; each transaction sums to zero per currency (I3).';

CREATE TABLE credit_accounts (
    customer_id text PRIMARY KEY,
    granted     bigint NOT NULL DEFAULT 0 CONSTRAINT credits_granted_not_negative CHECK (granted >= 0),
    revoked     bigint NOT NULL DEFAULT 0 CONSTRAINT credits_revoked_not_negative CHECK (revoked >= 0),
    spent       bigint NOT NULL DEFAULT 0 CONSTRAINT credits_spent_not_negative CHECK (spent >= 0),
    balance     bigint GENERATED ALWAYS AS (granted - revoked - spent) STORED,
    updated_at  timestamptz NOT NULL
);
COMMENT ON TABLE credit_accounts IS 'Running sums of the journal''s credit entries per customer (I8). A balance may fall below zero by a revoke, never by a spend.';

CREATE TABLE credit_spends (
    spend_id    text PRIMARY KEY,
    customer_id text NOT NULL,
    amount      bigint NOT NULL CONSTRAINT credit_spends_positive CHECK (amount > 0),
    spent_at    timestamptz NOT NULL
);
COMMENT ON TABLE credit_spends IS 'One row per spend; the id makes the call idempotent.';

-- +goose StatementBegin
CREATE FUNCTION journal_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the journal is append-only: % on % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'journal_append_only';
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION journal_entry_joins_its_own() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM journal_transactions t
                   WHERE t.transaction_id = NEW.transaction_id AND t.written_by = pg_current_xact_id()) THEN
        RAISE EXCEPTION 'journal transaction % was written earlier and takes no further entries', NEW.transaction_id
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'journal_closed_transaction';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION journal_sums_to_zero() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    lines integer;
    broken text;
BEGIN
    SELECT count(*) INTO lines FROM journal_entries e WHERE e.transaction_id = NEW.transaction_id;
    SELECT string_agg(s.currency || ' ' || s.total, ', ') INTO broken
    FROM (SELECT e.currency, sum(e.amount) AS total FROM journal_entries e
          WHERE e.transaction_id = NEW.transaction_id GROUP BY e.currency) s
    WHERE s.total <> 0;
    IF lines < 2 OR broken IS NOT NULL THEN
        RAISE EXCEPTION 'journal transaction % does not balance: % lines, %', NEW.transaction_id, lines, coalesce(broken, 'nothing over')
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'journal_sums_to_zero';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER journal_transactions_append_only BEFORE UPDATE OR DELETE ON journal_transactions
    FOR EACH ROW EXECUTE FUNCTION journal_is_append_only();
CREATE TRIGGER journal_entries_append_only BEFORE UPDATE OR DELETE ON journal_entries
    FOR EACH ROW EXECUTE FUNCTION journal_is_append_only();
CREATE TRIGGER journal_transactions_no_truncate BEFORE TRUNCATE ON journal_transactions
    FOR EACH STATEMENT EXECUTE FUNCTION journal_is_append_only();
CREATE TRIGGER journal_entries_no_truncate BEFORE TRUNCATE ON journal_entries
    FOR EACH STATEMENT EXECUTE FUNCTION journal_is_append_only();
CREATE TRIGGER journal_entries_join_their_own BEFORE INSERT ON journal_entries
    FOR EACH ROW EXECUTE FUNCTION journal_entry_joins_its_own();
CREATE CONSTRAINT TRIGGER journal_transactions_balance AFTER INSERT ON journal_transactions
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION journal_sums_to_zero();
CREATE CONSTRAINT TRIGGER journal_entries_balance AFTER INSERT ON journal_entries
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION journal_sums_to_zero();
