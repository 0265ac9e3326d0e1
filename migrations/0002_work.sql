-- +goose Up

-- Everything still owed an answer, what is wrong, and what others must be told.

CREATE TABLE cancel_requests (
    request_id      text PRIMARY KEY,
    payment_key     text NOT NULL REFERENCES payments (payment_key),
    status          text NOT NULL CONSTRAINT cancel_requests_status_known CHECK (status IN
        ('sending', 'unknown', 'in_progress', 'done', 'refused')),
    currency        text NOT NULL,
    amount          bigint NOT NULL CONSTRAINT cancel_requests_amount_not_negative CHECK (amount >= 0),
    refundable      bigint NOT NULL CONSTRAINT cancel_requests_within_refundable CHECK (refundable >= amount),
    reason          text NOT NULL CONSTRAINT cancel_requests_reason_bounded CHECK (length(reason) BETWEEN 1 AND 200),
    refund_account  jsonb,
    generation      integer NOT NULL DEFAULT 1,
    attempts        integer NOT NULL DEFAULT 0,
    transaction_key text,
    answer          text NOT NULL DEFAULT '' CONSTRAINT cancel_requests_answer_bounded CHECK (length(answer) <= 600),
    requested_by    text NOT NULL,
    created_at      timestamptz NOT NULL,
    key_first_used_at timestamptz,
    updated_at      timestamptz NOT NULL
);
COMMENT ON TABLE cancel_requests IS 'Cancels that we ask of the gateway; amounts in flight are reserved against the balance.';
COMMENT ON COLUMN cancel_requests.amount IS 'Zero only for the void of an unpaid virtual account.';
COMMENT ON COLUMN cancel_requests.refundable IS 'The balance sent along: the gateway refuses when it is another.';
COMMENT ON COLUMN cancel_requests.refund_account IS 'Where a paid virtual account is refunded to; cleared when the request ends.';
COMMENT ON COLUMN cancel_requests.transaction_key IS 'The cancel that the gateway answered with.';
CREATE INDEX cancel_requests_in_flight ON cancel_requests (payment_key) WHERE status IN ('sending', 'unknown', 'in_progress');

CREATE TABLE work (
    work_id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind             text NOT NULL CONSTRAINT work_kind_known CHECK (kind IN
        ('confirm_unknown', 'cancel_claimed', 'cancel_listed', 'cancel_in_progress', 'deposit_watch', 'cancel_request', 'parked')),
    payment_key      text NOT NULL,
    order_id         text,
    transaction_key  text,
    request_id       text REFERENCES cancel_requests (request_id),
    subject          text NOT NULL GENERATED ALWAYS AS (CASE
        WHEN transaction_key IS NOT NULL THEN 'cancel:' || transaction_key
        WHEN request_id IS NOT NULL THEN 'request:' || request_id
        ELSE kind END) STORED,
    currency         text,
    amount           bigint,
    opened_at        timestamptz NOT NULL,
    due_at           timestamptz NOT NULL,
    deadline         timestamptz NOT NULL,
    attempts         integer NOT NULL DEFAULT 0,
    last_asked_at    timestamptz,
    last_answer      text NOT NULL DEFAULT '',
    notice_failed_at timestamptz,
    notice_attempt   integer,
    notice_next_at   timestamptz,
    closed_at        timestamptz,
    closed_as        text CONSTRAINT work_closing_known CHECK (closed_as IN ('settled', 'refuted', 'expired', 'aborted')),
    CONSTRAINT work_closing_is_whole CHECK ((closed_at IS NULL) = (closed_as IS NULL))
);
COMMENT ON TABLE work IS 'Everything still owed an answer. Jobs only wake the sweeper; due times and deadlines live here.';
COMMENT ON COLUMN work.subject IS 'What is owed: one open row per payment and subject.';
COMMENT ON COLUMN work.deadline IS 'For cancels the last chance: first failure + 3 d 19 h 1 min + 15 min.';
COMMENT ON COLUMN work.notice_attempt IS 'Redelivery n of 7 that failed last, as the sender counts; 0 is the first delivery.';
COMMENT ON COLUMN work.notice_next_at IS 'When the sender is expected again.';
CREATE UNIQUE INDEX work_one_open_per_subject ON work (payment_key, subject) WHERE closed_at IS NULL;
CREATE INDEX work_due ON work (due_at) WHERE closed_at IS NULL;
CREATE INDEX work_open_by_transaction ON work (transaction_key) WHERE closed_at IS NULL AND transaction_key IS NOT NULL;
CREATE INDEX work_open_by_request ON work (request_id) WHERE closed_at IS NULL AND request_id IS NOT NULL;
CREATE INDEX work_closed ON work (closed_at) WHERE closed_at IS NOT NULL;

CREATE TABLE mismatches (
    mismatch_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind          text NOT NULL CONSTRAINT mismatches_kind_known CHECK (kind IN
        ('cancel_missing_here', 'cancel_missing_there', 'amount_differs', 'currency_differs', 'order_differs',
         'merchant_differs', 'payment_without_order', 'order_without_payment', 'order_paid_twice', 'paid_after_expiry',
         'stale_unknown', 'credits_already_spent', 'history_changed', 'quarantined', 'unrecognized_status')),
    fingerprint   text NOT NULL,
    status        text NOT NULL DEFAULT 'open' CONSTRAINT mismatches_status_known CHECK (status IN ('open', 'acknowledged', 'resolved')),
    payment_key   text,
    order_id      text,
    transaction_key text,
    currency      text,
    amount        bigint,
    detail        text NOT NULL,
    gateway       jsonb,
    books         jsonb,
    opened_at     timestamptz NOT NULL,
    last_seen_at  timestamptz NOT NULL,
    times_seen    integer NOT NULL DEFAULT 1,
    resolved_at   timestamptz,
    resolved_as   text CONSTRAINT mismatches_resolution_known CHECK (resolved_as IN ('auto', 'fixed', 'accepted')),
    note          text NOT NULL DEFAULT '',
    CONSTRAINT mismatches_resolution_is_whole CHECK ((status = 'resolved') = (resolved_at IS NOT NULL AND resolved_as IS NOT NULL)),
    CONSTRAINT mismatches_acceptance_needs_note CHECK (resolved_as IS DISTINCT FROM 'accepted' OR note <> '')
);
COMMENT ON TABLE mismatches IS 'What is wrong between the gateway''s books and ours, with the money at risk.';
COMMENT ON COLUMN mismatches.amount IS 'Money at risk, minor units.';
CREATE UNIQUE INDEX mismatches_one_open ON mismatches (fingerprint) WHERE status <> 'resolved';
CREATE INDEX mismatches_by_time ON mismatches (opened_at);

CREATE TABLE events (
    event_id     text PRIMARY KEY,
    kind         text NOT NULL CONSTRAINT events_kind_known CHECK (kind IN
        ('order.paid', 'order.partially_canceled', 'order.canceled', 'order.reopened', 'payment.failed', 'payment.surplus')),
    audience     text NOT NULL CONSTRAINT events_audience_known CHECK (audience IN ('merchant', 'customer')),
    order_id     text NOT NULL,
    payment_key  text NOT NULL,
    facts        jsonb NOT NULL,
    created_at   timestamptz NOT NULL,
    attempts     integer NOT NULL DEFAULT 0,
    last_answer  text NOT NULL DEFAULT '',
    resent_at    timestamptz,
    delivered_at timestamptz,
    dead_at      timestamptz
);
COMMENT ON TABLE events IS 'What the merchant and the customer must be told, written with the fact; a job delivers each at least once.';
COMMENT ON COLUMN events.dead_at IS 'Given up after days of attempts; stays listed until somebody sends it again.';
COMMENT ON COLUMN events.resent_at IS 'When somebody last asked for another delivery: its attempts are counted from then.';
CREATE INDEX events_dead ON events (created_at) WHERE dead_at IS NOT NULL AND delivered_at IS NULL;
CREATE INDEX events_pending ON events (created_at) WHERE dead_at IS NULL AND delivered_at IS NULL;
CREATE INDEX events_delivered ON events (created_at) WHERE delivered_at IS NOT NULL;
CREATE INDEX events_of_order ON events (order_id);

CREATE TABLE caller_requests (
    scope        text NOT NULL,
    key          text NOT NULL CONSTRAINT caller_requests_key_bounded CHECK (length(key) BETWEEN 1 AND 255),
    request_hash bytea NOT NULL,
    lease_until  timestamptz,
    status       integer,
    reply        jsonb,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (scope, key),
    CONSTRAINT caller_requests_final_or_leased CHECK ((status IS NULL) <> (lease_until IS NULL))
);
COMMENT ON TABLE caller_requests IS 'Idempotency of our own callers: only final replies are stored; the in-flight mark is a lease.';
CREATE INDEX caller_requests_by_time ON caller_requests (created_at);

CREATE TABLE deliveries (
    delivery_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    received_at     timestamptz NOT NULL,
    transmission_id text,
    retried_count   integer,
    sent_at         timestamptz,
    source          text NOT NULL,
    event_type      text NOT NULL DEFAULT '',
    word            text NOT NULL DEFAULT '',
    payment_key     text,
    order_id        text,
    body            jsonb,
    body_hash       bytea NOT NULL,
    body_bytes      integer NOT NULL,
    outcome         text NOT NULL CONSTRAINT deliveries_outcome_known CHECK (outcome IN
        ('received', 'applied_full', 'applied_partial', 'duplicate_skipped', 'payment_not_found', 'query_failed', 'state_mismatch',
         'apply_failed', 'db_failed', 'event_ignored', 'status_ignored', 'signature_rejected', 'body_unparsable')),
    reason          text NOT NULL DEFAULT '',
    status          integer,
    answered_at     timestamptz,
    query_ms        integer,
    reaped          boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE deliveries IS 'Every admitted webhook delivery: one row, one outcome (I10). Never an input to the books.';
COMMENT ON COLUMN deliveries.body IS 'Masked; NULL for payments never seen and for unreadable bodies.';
COMMENT ON COLUMN deliveries.body_hash IS 'SHA-256 of the raw bytes.';
COMMENT ON COLUMN deliveries.outcome IS 'received is not an outcome: it is what a crash leaves and the reaper closes.';
COMMENT ON COLUMN deliveries.reaped IS 'Closed by the reaper after a crash.';
CREATE INDEX deliveries_unfinished ON deliveries (received_at) WHERE outcome = 'received';
CREATE INDEX deliveries_of_payment ON deliveries (payment_key, received_at) WHERE payment_key IS NOT NULL;
CREATE INDEX deliveries_by_time ON deliveries (received_at);
