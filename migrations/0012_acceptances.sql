-- +goose Up

-- What the merchant's store was asked to take on before money moved, and what it still has to hear of.
-- Safe on a live table: the table is new; the constraint on events is checked against rows that all have older kinds.

CREATE TABLE acceptances (
    acceptance_id text PRIMARY KEY CONSTRAINT acceptances_id_form CHECK (acceptance_id ~ '^acc_[0-9a-z]{26}$'),
    order_id      text NOT NULL REFERENCES orders (order_id),
    payment_key   text NOT NULL,
    attempt       integer CONSTRAINT acceptances_attempt_positive CHECK (attempt >= 1),
    currency      text NOT NULL,
    amount        bigint NOT NULL CONSTRAINT acceptances_amount_positive CHECK (amount > 0),
    state         text NOT NULL CONSTRAINT acceptances_state_known CHECK (state IN
        ('asking', 'declined', 'held', 'kept', 'releasing', 'released', 'void', 'given_up')),
    word          text NOT NULL DEFAULT '' CONSTRAINT acceptances_word_known CHECK (word IN
        ('', 'accepted', 'declined', 'late', 'unreachable')),
    sent          boolean NOT NULL DEFAULT true,
    asked_at      timestamptz NOT NULL,
    due_at        timestamptz,
    owed_at       timestamptz,
    releases      integer NOT NULL DEFAULT 0,
    last_answer   text NOT NULL DEFAULT '' CONSTRAINT acceptances_answer_bounded CHECK (length(last_answer) <= 200),
    ended_at      timestamptz,
    told_at       timestamptz,
    CONSTRAINT acceptances_held_for_an_attempt CHECK (state NOT IN ('held', 'kept') OR (attempt IS NOT NULL AND word <> '')),
    CONSTRAINT acceptances_open_is_due CHECK (state NOT IN ('asking', 'held', 'releasing') OR due_at IS NOT NULL),
    CONSTRAINT acceptances_end_is_dated CHECK ((ended_at IS NULL) = (state IN ('asking', 'held', 'releasing'))),
    CONSTRAINT acceptances_owed_is_dated CHECK (state NOT IN ('releasing', 'released', 'given_up') OR owed_at IS NOT NULL),
    CONSTRAINT acceptances_released_was_sent CHECK (sent OR state NOT IN ('asking', 'declined', 'releasing', 'released', 'given_up'))
);
COMMENT ON TABLE acceptances IS 'Questions to the merchant''s store, one for each attempt to approve. A row is committed before its question is sent, so that whatever crashes, somebody releases what the store may hold.';
COMMENT ON COLUMN acceptances.payment_key IS 'Of the payment that is to be approved; it is in the books only once an intent is committed.';
COMMENT ON COLUMN acceptances.attempt IS 'The attempt of the payment, once its intent is committed: from then on the payment decides what becomes of the acceptance.';
COMMENT ON COLUMN acceptances.word IS 'What the store said, or that it said nothing; empty while nobody knows.';
COMMENT ON COLUMN acceptances.sent IS 'The store may have got the question. What was never sent need not be released.';
COMMENT ON COLUMN acceptances.due_at IS 'When somebody looks at it again; NULL = never.';
COMMENT ON COLUMN acceptances.owed_at IS 'Since when the store has to be told of the release.';
COMMENT ON COLUMN acceptances.told_at IS 'When the merchant was told to look at the order by hand.';
CREATE UNIQUE INDEX acceptances_one_asking_per_order ON acceptances (order_id) WHERE state = 'asking';
CREATE INDEX acceptances_due ON acceptances (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX acceptances_open ON acceptances (state, owed_at) WHERE state IN ('asking', 'held', 'releasing');
CREATE INDEX acceptances_of_order ON acceptances (order_id);
CREATE INDEX acceptances_ended ON acceptances (ended_at) WHERE due_at IS NULL;

ALTER TABLE events DROP CONSTRAINT events_kind_known;
ALTER TABLE events ADD CONSTRAINT events_kind_known CHECK (kind IN
    ('order.paid', 'order.partially_canceled', 'order.canceled', 'order.reopened', 'payment.failed', 'payment.surplus',
     'order.store_check'));
