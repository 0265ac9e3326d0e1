-- PostgreSQL 15

-- Name: public; Type: SCHEMA; Schema: -; Owner: -

CREATE SCHEMA public;

-- Name: SCHEMA public; Type: COMMENT; Schema: -; Owner: -

COMMENT ON SCHEMA public IS 'standard public schema';

-- Name: audit_dirty_cancels(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.audit_dirty_cancels() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('cancel', OLD.transaction_key, OLD.payment_key);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('cancel', NEW.transaction_key, NEW.payment_key);
    END IF;
    RETURN NULL;
END $$;

-- Name: audit_dirty_captures(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.audit_dirty_captures() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('capture', OLD.payment_key, OLD.payment_key);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('capture', NEW.payment_key, NEW.payment_key);
    END IF;
    RETURN NULL;
END $$;

-- Name: audit_dirty_contradicted(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.audit_dirty_contradicted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO audit_dirty (subject, key, payment_key)
    SELECT 'day', to_char(COALESCE(CASE WHEN NEW.kind = 'journal_differs' THEN (NEW.books ->> 'at')::timestamptz END,
        (SELECT g.at FROM mirror g WHERE g.transaction_key = NEW.transaction_key),
        CASE WHEN NEW.gateway ->> 'at' ~ '^2[0-9]{3}-' THEN (NEW.gateway ->> 'at')::timestamptz END,
        NEW.opened_at) AT TIME ZONE 'Asia/Seoul', 'YYYY-MM-DD'), '';
    RETURN NULL;
END $$;

-- Name: audit_dirty_everything(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.audit_dirty_everything() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('everything', '', '');
    RETURN NULL;
END $$;

-- Name: audit_dirty_fallen(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.audit_dirty_fallen() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO audit_dirty (subject, key, payment_key)
    SELECT 'capture', c.payment_key, c.payment_key FROM captures c WHERE c.payment_key = NEW.payment_key AND c.reversed_at IS NULL;
    RETURN NULL;
END $$;

-- Name: audit_dirty_mirror(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.audit_dirty_mirror() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

-- Name: audit_dirty_mismatches(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.audit_dirty_mismatches() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

-- Name: audit_dirty_order(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.audit_dirty_order() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_TABLE_NAME = 'payments' OR EXISTS (
            SELECT 1 FROM mirror g
            WHERE g.payment_key = NEW.payment_key AND g.kind = 'capture' AND g.order_id <> ''
                AND EXISTS (SELECT 1 FROM payments p WHERE p.payment_key = g.payment_key AND p.order_id <> g.order_id OFFSET 0)) THEN
        INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('order', NEW.payment_key, NEW.payment_key);
    END IF;
    RETURN NULL;
END $$;

-- Name: audit_dirty_payments(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.audit_dirty_payments() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO audit_dirty (subject, key, payment_key) VALUES ('capture', NEW.payment_key, NEW.payment_key);
    RETURN NULL;
END $$;

-- Name: audit_dirty_work(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.audit_dirty_work() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

-- Name: audit_runs_are_append_only(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.audit_runs_are_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.scope <> 'day' THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'what an audit said is for good: % on % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'audit_runs_append_only';
END $$;

-- Name: day_rows_are_append_only(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.day_rows_are_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF OLD.gone_run IS NULL AND NEW.gone_run IS NOT NULL THEN
            OLD.gone_run := NEW.gone_run;
            IF OLD IS NOT DISTINCT FROM NEW THEN
                RETURN NEW;
            END IF;
        END IF;
    END IF;
    RAISE EXCEPTION 'what a closed day said is for good: % on % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'day_rows_append_only';
END $$;

-- Name: deeds_are_only_added(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.deeds_are_only_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'what people did is not changed or deleted'
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'deeds_are_only_added';
END $$;

-- Name: journal_entries_balance(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.journal_entries_balance() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    wrong record;
BEGIN
    SELECT e.* INTO wrong
    FROM (SELECT transaction_id, currency, sum(amount) AS total,
              NOT EXISTS (SELECT 1 FROM journal_transactions t WHERE t.transaction_id = w.transaction_id
                          AND t.written_by = pg_current_xact_id() OFFSET 0) AS closed
          FROM written w GROUP BY transaction_id, currency) e
    WHERE e.total <> 0 OR e.closed
    ORDER BY e.closed DESC, e.transaction_id
    LIMIT 1;
    IF wrong.closed THEN
        RAISE EXCEPTION 'journal transaction % was written earlier and takes no further entries', wrong.transaction_id
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'journal_closed_transaction';
    ELSIF FOUND THEN
        RAISE EXCEPTION 'journal transaction % does not balance: % % over', wrong.transaction_id, wrong.total, wrong.currency
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'journal_sums_to_zero';
    END IF;
    RETURN NULL;
END $$;

-- Name: journal_is_append_only(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.journal_is_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'the journal is append-only: % on % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'journal_append_only';
END $$;

-- Name: journal_transaction_has_entries(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.journal_transaction_has_entries() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM journal_entries e WHERE e.transaction_id = NEW.transaction_id) THEN
        RAISE EXCEPTION 'journal transaction % has no entries', NEW.transaction_id
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'journal_sums_to_zero';
    END IF;
    RETURN NULL;
END $$;

-- Name: mismatch_changed(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.mismatch_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    did text;
    before jsonb := mismatch_fields(OLD);
    after  jsonb := mismatch_fields(NEW);
    said text := CASE WHEN NEW.revision = OLD.revision THEN CASE WHEN NEW.note <> OLD.note THEN NEW.note ELSE '' END ELSE NEW.remark END;
BEGIN
    IF NEW.mismatch_id <> OLD.mismatch_id OR NEW.fingerprint <> OLD.fingerprint OR NEW.kind <> OLD.kind THEN
        RAISE EXCEPTION 'what mismatch % is about cannot change', OLD.mismatch_id
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'mismatches_identity_is_fixed';
    END IF;
    did := CASE
        WHEN NEW.status <> OLD.status AND NEW.status = 'resolved' THEN 'resolved'
        WHEN NEW.status <> OLD.status AND NEW.status = 'acknowledged' THEN 'acknowledged'
        WHEN NEW.status <> OLD.status THEN 'reopened'
        WHEN (NEW.currency, NEW.amount) IS DISTINCT FROM (OLD.currency, OLD.amount) THEN 'seen_changed'
        WHEN NEW.kind = 'signed_day_changed' AND NEW.gateway ->> 'facts' IS DISTINCT FROM OLD.gateway ->> 'facts' THEN 'seen_changed'
        WHEN NEW.proposal IS DISTINCT FROM OLD.proposal AND NEW.proposal IS NOT NULL THEN 'resolution_proposed'
        WHEN NEW.proposal IS DISTINCT FROM OLD.proposal THEN 'resolution_withdrawn'
        WHEN NEW.assignee IS DISTINCT FROM OLD.assignee THEN 'assigned'
        WHEN NEW.incident_id IS DISTINCT FROM OLD.incident_id THEN 'joined_incident'
        WHEN said <> '' THEN 'noted'
        WHEN NEW.detail <> OLD.detail AND NEW.kind = 'history_changed' THEN 'seen_changed'
        WHEN (after - 'detail' - 'opened_run') IS DISTINCT FROM (before - 'detail' - 'opened_run') THEN 'seen_changed'
        END;
    IF did IS NULL THEN -- only seen again
        NEW.revision := OLD.revision;
        NEW.changed_at := OLD.changed_at;
        NEW.changed_by := OLD.changed_by;
        NEW.remark := OLD.remark;
        RETURN NEW;
    END IF;
    IF NEW.revision = OLD.revision THEN
        NEW.changed_at := clock_timestamp();
        NEW.changed_by := 'db:' || session_user;
    END IF;
    NEW.revision := OLD.revision + 1;
    NEW.remark := said;
    INSERT INTO mismatch_trail (mismatch_id, number, at, actor, action, changed, note, gateway, books)
    SELECT NEW.mismatch_id, NEW.revision, NEW.changed_at, NEW.changed_by, did,
        COALESCE((SELECT jsonb_object_agg(f.key, f.value) FROM jsonb_each(after) f WHERE f.value IS DISTINCT FROM before -> f.key), '{}'),
        said,
        CASE WHEN did IN ('resolved', 'resolution_proposed', 'reopened', 'seen_changed') THEN NEW.gateway END,
        CASE WHEN did IN ('resolved', 'resolution_proposed', 'reopened', 'seen_changed') THEN NEW.books END;
    RETURN NEW;
END $$;

-- Name: mismatches; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.mismatches (
    mismatch_id bigint NOT NULL,
    kind text NOT NULL,
    fingerprint text NOT NULL,
    status text DEFAULT 'open'::text NOT NULL,
    payment_key text,
    order_id text,
    transaction_key text,
    currency text,
    amount bigint,
    detail text NOT NULL,
    gateway jsonb,
    books jsonb,
    opened_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    times_seen integer DEFAULT 1 NOT NULL,
    resolved_at timestamp with time zone,
    resolved_as text,
    note text DEFAULT ''::text NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    changed_at timestamp with time zone,
    changed_by text DEFAULT 'system'::text NOT NULL,
    remark text DEFAULT ''::text NOT NULL,
    assignee text,
    proposal jsonb,
    resolved_by text,
    opened_run text DEFAULT ''::text NOT NULL,
    incident_id bigint,
    CONSTRAINT mismatches_acceptance_needs_note CHECK (((resolved_as IS DISTINCT FROM 'accepted'::text) OR (note <> ''::text))),
    CONSTRAINT mismatches_change_has_actor CHECK ((changed_by <> ''::text)),
    CONSTRAINT mismatches_kind_known CHECK ((kind = ANY (ARRAY['cancel_missing_here'::text, 'cancel_missing_there'::text, 'amount_differs'::text, 'currency_differs'::text, 'order_differs'::text, 'merchant_differs'::text, 'payment_without_order'::text, 'order_without_payment'::text, 'order_paid_twice'::text, 'paid_after_expiry'::text, 'stale_unknown'::text, 'credits_already_spent'::text, 'history_changed'::text, 'quarantined'::text, 'unrecognized_status'::text, 'signed_day_changed'::text, 'journal_differs'::text]))),
    CONSTRAINT mismatches_proposal_is_whole CHECK (((proposal IS NULL) OR ((status <> 'resolved'::text) AND (proposal ? 'by'::text) AND (proposal ? 'at'::text) AND ((proposal ->> 'as'::text) = ANY (ARRAY['fixed'::text, 'accepted'::text]))))),
    CONSTRAINT mismatches_resolution_is_whole CHECK (((status = 'resolved'::text) = ((resolved_at IS NOT NULL) AND (resolved_as IS NOT NULL)))),
    CONSTRAINT mismatches_resolution_known CHECK ((resolved_as = ANY (ARRAY['auto'::text, 'fixed'::text, 'accepted'::text]))),
    CONSTRAINT mismatches_status_known CHECK ((status = ANY (ARRAY['open'::text, 'acknowledged'::text, 'resolved'::text])))
);

-- Name: TABLE mismatches; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.mismatches IS 'What is wrong between the gateway''s books and ours, with the money at risk.';

-- Name: COLUMN mismatches.fingerprint; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mismatches.fingerprint IS 'The same contradiction found again is the same row: it is seen again, or opened again in place.';

-- Name: COLUMN mismatches.amount; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mismatches.amount IS 'Money at risk, minor units.';

-- Name: COLUMN mismatches.note; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mismatches.note IS 'What the person who resolved it said.';

-- Name: COLUMN mismatches.revision; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mismatches.revision IS 'Number of its last change, as in the trail.';

-- Name: COLUMN mismatches.changed_by; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mismatches.changed_by IS 'Who made the last change: system, os:<user> or api:<key>.';

-- Name: COLUMN mismatches.remark; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mismatches.remark IS 'What was said with the last change.';

-- Name: COLUMN mismatches.proposal; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mismatches.proposal IS 'How a first person wants it resolved, until a second one confirms or withdraws: as, by, at, note, and what it says of a cancel request of ours.';

-- Name: COLUMN mismatches.opened_run; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mismatches.opened_run IS 'The run that opened it, or opened it again, last; empty when one answer did.';

-- Name: COLUMN mismatches.incident_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mismatches.incident_id IS 'The storm that it came with.';

-- Name: mismatch_fields(public.mismatches); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.mismatch_fields(m public.mismatches) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT jsonb_build_object('status', m.status, 'currency', m.currency, 'amount', m.amount, 'detail', m.detail,
        'assignee', m.assignee, 'proposal', m.proposal, 'resolved_as', m.resolved_as, 'resolved_by', m.resolved_by,
        'note', m.note, 'incident_id', m.incident_id, 'opened_run', m.opened_run)
$$;

-- Name: mismatch_opened(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.mismatch_opened() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO mismatch_trail (mismatch_id, number, at, actor, action, changed, note, gateway, books)
    VALUES (NEW.mismatch_id, NEW.revision, COALESCE(NEW.changed_at, NEW.opened_at), NEW.changed_by, 'opened',
        mismatch_fields(NEW), NEW.remark, NEW.gateway, NEW.books);
    RETURN NULL;
END $$;

-- Name: mismatch_trail_is_append_only(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.mismatch_trail_is_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'the trail of mismatches is append-only: % on % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'mismatch_trail_append_only';
END $$;

-- Name: signoff_is_append_only(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.signoff_is_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'a signature is for good: % on % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'day_signoffs_append_only';
END $$;

-- Name: acceptances; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.acceptances (
    acceptance_id text NOT NULL,
    order_id text NOT NULL,
    payment_key text NOT NULL,
    attempt integer,
    currency text NOT NULL,
    amount bigint NOT NULL,
    state text NOT NULL,
    word text DEFAULT ''::text NOT NULL,
    sent boolean DEFAULT true NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    owed_at timestamp with time zone,
    releases integer DEFAULT 0 NOT NULL,
    last_answer text DEFAULT ''::text NOT NULL,
    ended_at timestamp with time zone,
    told_at timestamp with time zone,
    CONSTRAINT acceptances_amount_positive CHECK ((amount > 0)),
    CONSTRAINT acceptances_answer_bounded CHECK ((length(last_answer) <= 200)),
    CONSTRAINT acceptances_attempt_positive CHECK ((attempt >= 1)),
    CONSTRAINT acceptances_end_is_dated CHECK (((ended_at IS NULL) = (state = ANY (ARRAY['asking'::text, 'held'::text, 'releasing'::text])))),
    CONSTRAINT acceptances_held_for_an_attempt CHECK (((state <> ALL (ARRAY['held'::text, 'kept'::text])) OR ((attempt IS NOT NULL) AND (word <> ''::text)))),
    CONSTRAINT acceptances_id_form CHECK ((acceptance_id ~ '^acc_[0-9a-z]{26}$'::text)),
    CONSTRAINT acceptances_open_is_due CHECK (((state <> ALL (ARRAY['asking'::text, 'held'::text, 'releasing'::text])) OR (due_at IS NOT NULL))),
    CONSTRAINT acceptances_owed_is_dated CHECK (((state <> ALL (ARRAY['releasing'::text, 'released'::text, 'given_up'::text])) OR (owed_at IS NOT NULL))),
    CONSTRAINT acceptances_released_was_sent CHECK ((sent OR (state <> ALL (ARRAY['asking'::text, 'declined'::text, 'releasing'::text, 'released'::text, 'given_up'::text])))),
    CONSTRAINT acceptances_state_known CHECK ((state = ANY (ARRAY['asking'::text, 'declined'::text, 'held'::text, 'kept'::text, 'releasing'::text, 'released'::text, 'void'::text, 'given_up'::text]))),
    CONSTRAINT acceptances_word_known CHECK ((word = ANY (ARRAY[''::text, 'accepted'::text, 'declined'::text, 'late'::text, 'unreachable'::text])))
);

-- Name: TABLE acceptances; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.acceptances IS 'Questions to the merchant''s store, one for each attempt to approve. A row is committed before its question is sent, so that whatever crashes, somebody releases what the store may hold.';

-- Name: COLUMN acceptances.payment_key; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.acceptances.payment_key IS 'Of the payment that is to be approved; it is in the books only once an intent is committed.';

-- Name: COLUMN acceptances.attempt; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.acceptances.attempt IS 'The attempt of the payment, once its intent is committed: from then on the payment decides what becomes of the acceptance.';

-- Name: COLUMN acceptances.word; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.acceptances.word IS 'What the store said, or that it said nothing; empty while nobody knows.';

-- Name: COLUMN acceptances.sent; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.acceptances.sent IS 'The store may have got the question. What was never sent need not be released.';

-- Name: COLUMN acceptances.due_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.acceptances.due_at IS 'When somebody looks at it again; NULL = never.';

-- Name: COLUMN acceptances.owed_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.acceptances.owed_at IS 'Since when the store has to be told of the release.';

-- Name: COLUMN acceptances.told_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.acceptances.told_at IS 'When the merchant was told to look at the order by hand.';

-- Name: accounts; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.accounts (
    account_id bigint NOT NULL,
    name text NOT NULL,
    roles text[] NOT NULL,
    password text NOT NULL,
    must_change boolean NOT NULL,
    epoch integer DEFAULT 1 NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    locked_until timestamp with time zone,
    disabled_at timestamp with time zone,
    signed_in_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    CONSTRAINT accounts_failures_not_negative CHECK ((failures >= 0)),
    CONSTRAINT accounts_name_can_stand_in_a_trail CHECK ((name ~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$'::text)),
    CONSTRAINT accounts_password_is_a_hash CHECK ((password ~~ '$argon2id$%'::text)),
    CONSTRAINT accounts_roles_known CHECK (((cardinality(roles) > 0) AND (roles <@ ARRAY['viewer'::text, 'finance'::text, 'approver'::text, 'operator'::text])))
);

-- Name: TABLE accounts; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.accounts IS 'Who may come in through the pages. Never deleted: trails name them.';

-- Name: COLUMN accounts.password; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.accounts.password IS 'argon2id in the PHC string format, with its own cost and salt.';

-- Name: COLUMN accounts.must_change; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.accounts.must_change IS 'The password was given by an operator and lets in only to be changed.';

-- Name: COLUMN accounts.epoch; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.accounts.epoch IS 'Sessions of an earlier epoch are over.';

-- Name: COLUMN accounts.failures; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.accounts.failures IS 'Attempts to sign in since the last that succeeded, counted before the password is looked at.';

-- Name: accounts_account_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.accounts ALTER COLUMN account_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.accounts_account_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: api_keys; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.api_keys (
    key_id bigint NOT NULL,
    name text NOT NULL,
    prefix text NOT NULL,
    digest bytea NOT NULL,
    scopes text[] NOT NULL,
    made_at timestamp with time zone NOT NULL,
    made_by text NOT NULL,
    ends_at timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone,
    CONSTRAINT api_keys_digest_is_sha256 CHECK ((octet_length(digest) = 32)),
    CONSTRAINT api_keys_name_can_stand_in_a_trail CHECK ((name ~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$'::text)),
    CONSTRAINT api_keys_prefix_form CHECK ((prefix ~ '^daesa_[a-z2-7]{8}$'::text)),
    CONSTRAINT api_keys_scopes_known CHECK (((cardinality(scopes) > 0) AND (scopes <@ ARRAY['money'::text, 'read'::text, 'books'::text])))
);

-- Name: TABLE api_keys; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.api_keys IS 'Keys of the merchant''s servers, one row for each secret. Never deleted: trails name them.';

-- Name: COLUMN api_keys.name; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.api_keys.name IS 'Who the key is; those that took its place at a rotation have the same.';

-- Name: COLUMN api_keys.prefix; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.api_keys.prefix IS 'How the key begins: to find it by, no secret.';

-- Name: COLUMN api_keys.digest; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.api_keys.digest IS 'SHA-256 of the key, which has 256 random bits and is kept nowhere.';

-- Name: COLUMN api_keys.ends_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.api_keys.ends_at IS 'Another took its place; it lets in until then.';

-- Name: COLUMN api_keys.last_used_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.api_keys.last_used_at IS 'To about two minutes.';

-- Name: api_keys_key_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.api_keys ALTER COLUMN key_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.api_keys_key_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: audit_dirty; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.audit_dirty (
    dirty_id bigint NOT NULL,
    subject text NOT NULL,
    key text NOT NULL,
    payment_key text NOT NULL,
    CONSTRAINT audit_dirty_subject_known CHECK ((subject = ANY (ARRAY['cancel'::text, 'capture'::text, 'order'::text, 'day'::text, 'everything'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0', autovacuum_vacuum_insert_threshold='5000');

-- Name: TABLE audit_dirty; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.audit_dirty IS 'Keys whose comparison may come to something else now, written by triggers in the transaction of the change. An audit takes what it can see; no key is unique, so no change ever waits for another.';

-- Name: COLUMN audit_dirty.key; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_dirty.key IS 'The transaction key of a cancel; of captures, and of what may be another order''s, the payment key; of a day its date.';

-- Name: COLUMN audit_dirty.payment_key; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_dirty.payment_key IS 'What else to compare anew: the voids of the payment and what was open about its captures.';

-- Name: audit_dirty_dirty_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.audit_dirty ALTER COLUMN dirty_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_dirty_dirty_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: audit_judged; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.audit_judged (
    subject text NOT NULL,
    key text NOT NULL,
    payment_key text NOT NULL,
    order_id text NOT NULL,
    day date,
    currency text,
    amount bigint,
    parts jsonb,
    entries jsonb,
    open_line text,
    open_currency text,
    since timestamp with time zone,
    recheck_at timestamp with time zone,
    recheck_as_of timestamp with time zone,
    CONSTRAINT audit_judged_open_is_dated CHECK ((((open_line IS NULL) = (since IS NULL)) AND ((open_line IS NULL) = (open_currency IS NULL)))),
    CONSTRAINT audit_judged_plain_or_parts CHECK (((parts IS NULL) = ((day IS NOT NULL) AND (currency IS NOT NULL) AND (amount IS NOT NULL)))),
    CONSTRAINT audit_judged_subject_known CHECK ((subject = ANY (ARRAY['cancel'::text, 'capture'::text])))
);

-- Name: TABLE audit_judged; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.audit_judged IS 'What each cancel last came to in the comparison, so that sums move by difference. Of captures only those that do not agree.';

-- Name: COLUMN audit_judged.day; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_judged.day IS 'Set with currency and amount where both books simply agree: the Korean business day of the mirror''s row.';

-- Name: COLUMN audit_judged.parts; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_judged.parts IS 'Its share of each line of each day, where that is more than simply agreeing.';

-- Name: COLUMN audit_judged.entries; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_judged.entries IS 'How the statement lists it.';

-- Name: COLUMN audit_judged.open_line; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_judged.open_line IS 'The line it is listed under; breaks before any other.';

-- Name: COLUMN audit_judged.recheck_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_judged.recheck_at IS 'When the clock alone makes it something else.';

-- Name: COLUMN audit_judged.recheck_as_of; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_judged.recheck_as_of IS 'It becomes something else once the list was read past this instant.';

-- Name: audit_runs; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.audit_runs (
    run_id bigint NOT NULL,
    scope text NOT NULL,
    day date,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    as_of timestamp with time zone NOT NULL,
    verdict text NOT NULL,
    statement jsonb NOT NULL,
    closed bytea,
    digest bytea,
    facts bytea,
    CONSTRAINT audit_runs_closed_is_of_a_day CHECK (((closed IS NULL) OR (scope = 'day'::text))),
    CONSTRAINT audit_runs_closed_is_whole CHECK ((((closed IS NULL) = (digest IS NULL)) AND ((closed IS NULL) = (facts IS NULL)))),
    CONSTRAINT audit_runs_day_scope CHECK (((scope = 'day'::text) = (day IS NOT NULL))),
    CONSTRAINT audit_runs_digest_whole CHECK ((length(digest) = 32)),
    CONSTRAINT audit_runs_facts_whole CHECK ((length(facts) = 32)),
    CONSTRAINT audit_runs_scope_known CHECK ((scope = ANY (ARRAY['recent'::text, 'day'::text, 'all'::text]))),
    CONSTRAINT audit_runs_verdict_known CHECK ((verdict = ANY (ARRAY['reconciled'::text, 'reconciled_with_pending'::text, 'breaks'::text, 'incomplete'::text, 'error'::text])))
);

-- Name: TABLE audit_runs; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.audit_runs IS 'Every audit, passing ones too, with the statement that says what it looked at.';

-- Name: COLUMN audit_runs.as_of; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_runs.as_of IS 'The list was read completely up to here.';

-- Name: COLUMN audit_runs.closed; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_runs.closed IS 'What the day says, in bytes of our own, whenever and however often it is looked at; NULL where the run could not see the whole day.';

-- Name: COLUMN audit_runs.digest; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_runs.digest IS 'SHA-256 of closed.';

-- Name: COLUMN audit_runs.facts; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_runs.facts IS 'SHA-256 over what a signature covers: a pending cancel that is applied as listed leaves it as it is.';

-- Name: audit_runs_run_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.audit_runs ALTER COLUMN run_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_runs_run_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: audit_state; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.audit_state (
    only_row boolean DEFAULT true NOT NULL,
    basis text NOT NULL,
    judged_at timestamp with time zone NOT NULL,
    as_of timestamp with time zone NOT NULL,
    rebuilt_at timestamp with time zone NOT NULL,
    CONSTRAINT audit_state_is_one_row CHECK (only_row)
);

-- Name: TABLE audit_state; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.audit_state IS 'What the running sums were computed by; one row. Where it differs from now, everything is computed anew.';

-- Name: COLUMN audit_state.basis; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_state.basis IS 'The settings that decide what counts: rules, opening, list lag, where the list begins.';

-- Name: COLUMN audit_state.judged_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_state.judged_at IS 'The instant of the last run. A clock set back from it proves nothing by difference.';

-- Name: COLUMN audit_state.as_of; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_state.as_of IS 'How far the list was read then.';

-- Name: audit_totals; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.audit_totals (
    day date NOT NULL,
    line text NOT NULL,
    currency text NOT NULL,
    count bigint NOT NULL,
    amount bigint NOT NULL,
    entries bigint NOT NULL
)
WITH (fillfactor='50');

-- Name: TABLE audit_totals; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.audit_totals IS 'The sums of audit_judged per business day, moved by difference. Closing runs and the nightly run compute them in full and compare.';

-- Name: COLUMN audit_totals.line; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_totals.line IS 'A line of the statement, or what else it counts: the gateway''s cancels, ours, open work, orders, captures that do not agree.';

-- Name: COLUMN audit_totals.entries; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_totals.entries IS 'How many entries the line has; its count may be another.';

-- Name: books_settings; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.books_settings (
    only_row boolean DEFAULT true NOT NULL,
    order_pattern text NOT NULL,
    opening_at timestamp with time zone,
    list_lag interval NOT NULL,
    set_at timestamp with time zone NOT NULL,
    CONSTRAINT books_settings_is_one_row CHECK (only_row),
    CONSTRAINT books_settings_lag_not_negative CHECK ((list_lag >= '00:00:00'::interval))
);

-- Name: TABLE books_settings; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.books_settings IS 'The settings that the service goes by; one row. Written by the service at its start and with each read of what is new. A command that writes is refused when it was told others.';

-- Name: COLUMN books_settings.order_pattern; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.books_settings.order_pattern IS 'Regular expression of our order ids; empty: every order is ours.';

-- Name: COLUMN books_settings.opening_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.books_settings.opening_at IS 'What happened before belongs to the system before us; null: nothing does.';

-- Name: COLUMN books_settings.list_lag; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.books_settings.list_lag IS 'How late a row may appear in the list.';

-- Name: caller_requests; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.caller_requests (
    scope text NOT NULL,
    key text NOT NULL,
    request_hash bytea NOT NULL,
    lease_until timestamp with time zone,
    status integer,
    reply jsonb,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT caller_requests_final_or_leased CHECK (((status IS NULL) <> (lease_until IS NULL))),
    CONSTRAINT caller_requests_key_bounded CHECK (((length(key) >= 1) AND (length(key) <= 255)))
);

-- Name: TABLE caller_requests; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.caller_requests IS 'Idempotency of our own callers: only final replies are stored; the in-flight mark is a lease.';

-- Name: cancel_requests; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.cancel_requests (
    request_id text NOT NULL,
    payment_key text NOT NULL,
    status text NOT NULL,
    currency text NOT NULL,
    amount bigint NOT NULL,
    refundable bigint NOT NULL,
    reason text NOT NULL,
    refund_account jsonb,
    generation integer DEFAULT 1 NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    transaction_key text,
    answer text DEFAULT ''::text NOT NULL,
    requested_by text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    key_first_used_at timestamp with time zone,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT cancel_requests_amount_not_negative CHECK ((amount >= 0)),
    CONSTRAINT cancel_requests_answer_bounded CHECK ((length(answer) <= 600)),
    CONSTRAINT cancel_requests_reason_bounded CHECK (((length(reason) >= 1) AND (length(reason) <= 200))),
    CONSTRAINT cancel_requests_status_known CHECK ((status = ANY (ARRAY['sending'::text, 'unknown'::text, 'in_progress'::text, 'done'::text, 'refused'::text]))),
    CONSTRAINT cancel_requests_within_refundable CHECK ((refundable >= amount))
);

-- Name: TABLE cancel_requests; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.cancel_requests IS 'Cancels that we ask of the gateway; amounts in flight are reserved against the balance.';

-- Name: COLUMN cancel_requests.amount; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.cancel_requests.amount IS 'Zero only for the void of an unpaid virtual account.';

-- Name: COLUMN cancel_requests.refundable; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.cancel_requests.refundable IS 'The balance sent along: the gateway refuses when it is another.';

-- Name: COLUMN cancel_requests.refund_account; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.cancel_requests.refund_account IS 'Where a paid virtual account is refunded to; cleared when the request ends.';

-- Name: COLUMN cancel_requests.transaction_key; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.cancel_requests.transaction_key IS 'The cancel that the gateway answered with.';

-- Name: cancels; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.cancels (
    transaction_key text NOT NULL,
    payment_key text NOT NULL,
    order_id text NOT NULL,
    currency text NOT NULL,
    amount bigint NOT NULL,
    tax_free bigint,
    tax_exempt bigint,
    reason text DEFAULT ''::text NOT NULL,
    canceled_at timestamp with time zone NOT NULL,
    channel text NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    credits_revoked bigint DEFAULT 0 NOT NULL,
    CONSTRAINT cancels_amount_not_negative CHECK ((amount >= 0)),
    CONSTRAINT cancels_credits_not_negative CHECK ((credits_revoked >= 0)),
    CONSTRAINT cancels_reason_bounded CHECK ((length(reason) <= 200))
);

-- Name: TABLE cancels; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.cancels IS 'One row per cancel that the gateway finished, keyed by its own transaction key (I1).';

-- Name: COLUMN cancels.amount; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.cancels.amount IS 'Zero only for the void of an unpaid virtual account: counted on both sides, moving nothing.';

-- Name: COLUMN cancels.channel; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.cancels.channel IS 'How we came to know: webhook, cancel, sweep, last_chance, …';

-- Name: captures; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.captures (
    payment_key text NOT NULL,
    number integer NOT NULL,
    transaction_key text,
    currency text NOT NULL,
    amount bigint NOT NULL,
    captured_at timestamp with time zone NOT NULL,
    channel text NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    reversed_at timestamp with time zone,
    CONSTRAINT captures_amount_positive CHECK ((amount > 0)),
    CONSTRAINT captures_number_positive CHECK ((number >= 1))
);

-- Name: TABLE captures; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.captures IS 'Money taken. A payment has several only when a deposit fell back and came again, or was taken back in error.';

-- Name: COLUMN captures.transaction_key; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.captures.transaction_key IS 'NULL until the gateway names it: a payment object with cancels no longer shows it.';

-- Name: credit_accounts; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.credit_accounts (
    customer_id text NOT NULL,
    granted bigint DEFAULT 0 NOT NULL,
    revoked bigint DEFAULT 0 NOT NULL,
    spent bigint DEFAULT 0 NOT NULL,
    balance bigint GENERATED ALWAYS AS (((granted - revoked) - spent)) STORED,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT credits_granted_not_negative CHECK ((granted >= 0)),
    CONSTRAINT credits_revoked_not_negative CHECK ((revoked >= 0)),
    CONSTRAINT credits_spent_not_negative CHECK ((spent >= 0))
);

-- Name: TABLE credit_accounts; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.credit_accounts IS 'Running sums of the journal''s credit entries per customer (I8). A balance may fall below zero by a revoke, never by a spend.';

-- Name: credit_spends; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.credit_spends (
    spend_id text NOT NULL,
    customer_id text NOT NULL,
    amount bigint NOT NULL,
    spent_at timestamp with time zone NOT NULL,
    CONSTRAINT credit_spends_positive CHECK ((amount > 0))
);

-- Name: TABLE credit_spends; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.credit_spends IS 'One row per spend; the id makes the call idempotent.';

-- Name: day_rows; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.day_rows (
    day date NOT NULL,
    movement text NOT NULL,
    transaction_key text NOT NULL,
    payment_key text NOT NULL,
    order_id text NOT NULL,
    standing text NOT NULL,
    at timestamp with time zone NOT NULL,
    listed_currency text,
    listed bigint,
    booked_currency text,
    booked bigint,
    first_run bigint NOT NULL,
    gone_run bigint,
    CONSTRAINT day_rows_gone_later CHECK ((gone_run > first_run))
);

-- Name: TABLE day_rows; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.day_rows IS 'The transactions of each closed day as its closing runs saw them: what a day said before can be told even when both books have changed.';

-- Name: COLUMN day_rows.movement; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.day_rows.movement IS 'Empty: nobody can tell, of a row that cannot be read and that a person accepted.';

-- Name: COLUMN day_rows.transaction_key; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.day_rows.transaction_key IS 'Empty for a capture of ours that the gateway has not named.';

-- Name: COLUMN day_rows.listed; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.day_rows.listed IS 'In the gateway''s list, minor units; NULL: not there.';

-- Name: COLUMN day_rows.booked; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.day_rows.booked IS 'In our books, minor units; NULL: not there.';

-- Name: COLUMN day_rows.first_run; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.day_rows.first_run IS 'The closing run that saw the row like this first.';

-- Name: COLUMN day_rows.gone_run; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.day_rows.gone_run IS 'The closing run that no longer saw it like this; NULL as long as it stands.';

-- Name: day_signoffs; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.day_signoffs (
    signoff_id bigint NOT NULL,
    day date NOT NULL,
    signed_by text NOT NULL,
    signed_at timestamp with time zone NOT NULL,
    run_id bigint NOT NULL,
    digest bytea NOT NULL,
    facts bytea NOT NULL,
    journal_head text,
    note text DEFAULT ''::text NOT NULL,
    booked_up_to bigint,
    CONSTRAINT day_signoffs_booked_up_to_not_negative CHECK ((booked_up_to >= 0)),
    CONSTRAINT day_signoffs_by_a_person CHECK ((signed_by <> ALL (ARRAY[''::text, 'system'::text]))),
    CONSTRAINT day_signoffs_digest_whole CHECK ((length(digest) = 32)),
    CONSTRAINT day_signoffs_facts_whole CHECK ((length(facts) = 32)),
    CONSTRAINT day_signoffs_note_bounded CHECK ((length(note) <= 500))
);

-- Name: TABLE day_signoffs; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.day_signoffs IS 'Who signed which statement of a business day. Never changed or deleted; the newest of a day counts.';

-- Name: COLUMN day_signoffs.run_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.day_signoffs.run_id IS 'The closing run made for the signature, in the same transaction.';

-- Name: COLUMN day_signoffs.digest; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.day_signoffs.digest IS 'SHA-256 of the statement that was signed.';

-- Name: COLUMN day_signoffs.journal_head; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.day_signoffs.journal_head IS 'Hash of the newest journal head when it was signed; NULL where there was none.';

-- Name: COLUMN day_signoffs.booked_up_to; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.day_signoffs.booked_up_to IS 'The newest journal transaction among the bookings of the signed statement: the first head with up_to_id not below it seals them all. 0: it has none; NULL: signed when this was not kept.';

-- Name: day_signoffs_signoff_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.day_signoffs ALTER COLUMN signoff_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.day_signoffs_signoff_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: days_to_close; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.days_to_close (
    day date NOT NULL,
    since timestamp with time zone NOT NULL
);

-- Name: TABLE days_to_close; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.days_to_close IS 'Business days of any age of which anything changed since they were closed, or that the list was read for only now. An audit and the end of a read note them, the closing run that looks takes the note back.';

-- Name: deeds; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.deeds (
    deed_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    detail text NOT NULL,
    source text NOT NULL,
    CONSTRAINT deeds_action_known CHECK ((action = ANY (ARRAY['account_made'::text, 'roles_set'::text, 'password_given'::text, 'password_chosen'::text, 'account_disabled'::text, 'account_enabled'::text, 'signed_in'::text, 'sign_in_refused'::text, 'signed_out'::text, 'report_taken'::text, 'gateway_asked'::text, 'key_made'::text, 'key_rotated'::text, 'key_revoked'::text, 'notice_seen'::text, 'delivery_rehearsed'::text, 'delivery_replayed'::text]))),
    CONSTRAINT deeds_has_actor CHECK ((actor <> ''::text))
);

-- Name: TABLE deeds; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.deeds IS 'What people did and looked at; rows are never changed or deleted.';

-- Name: COLUMN deeds.actor; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.deeds.actor IS 'os:<user>, api:<key> or person:<account>.';

-- Name: COLUMN deeds.subject; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.deeds.subject IS 'The account, key, day, order, mismatch or delivery that it was done with.';

-- Name: COLUMN deeds.source; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.deeds.source IS 'The address it came from; empty for commands.';

-- Name: deeds_deed_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.deeds ALTER COLUMN deed_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.deeds_deed_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: deliveries; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.deliveries (
    delivery_id bigint NOT NULL,
    received_at timestamp with time zone NOT NULL,
    transmission_id text,
    retried_count integer,
    sent_at timestamp with time zone,
    source text NOT NULL,
    event_type text DEFAULT ''::text NOT NULL,
    word text DEFAULT ''::text NOT NULL,
    payment_key text,
    order_id text,
    body jsonb,
    body_hash bytea NOT NULL,
    body_bytes integer NOT NULL,
    outcome text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    status integer,
    answered_at timestamp with time zone,
    query_ms integer,
    reaped boolean DEFAULT false NOT NULL,
    CONSTRAINT deliveries_outcome_known CHECK ((outcome = ANY (ARRAY['received'::text, 'applied_full'::text, 'applied_partial'::text, 'duplicate_skipped'::text, 'payment_not_found'::text, 'query_failed'::text, 'state_mismatch'::text, 'apply_failed'::text, 'db_failed'::text, 'event_ignored'::text, 'status_ignored'::text, 'signature_rejected'::text, 'body_unparsable'::text])))
);

-- Name: TABLE deliveries; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.deliveries IS 'Every admitted webhook delivery: one row, one outcome (I10). Never an input to the books.';

-- Name: COLUMN deliveries.body; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.deliveries.body IS 'Masked; NULL for payments never seen and for unreadable bodies.';

-- Name: COLUMN deliveries.body_hash; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.deliveries.body_hash IS 'SHA-256 of the raw bytes.';

-- Name: COLUMN deliveries.outcome; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.deliveries.outcome IS 'received is not an outcome: it is what a crash leaves and the reaper closes.';

-- Name: COLUMN deliveries.reaped; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.deliveries.reaped IS 'Closed by the reaper after a crash.';

-- Name: deliveries_delivery_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.deliveries ALTER COLUMN delivery_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.deliveries_delivery_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: events; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.events (
    event_id text NOT NULL,
    kind text NOT NULL,
    audience text NOT NULL,
    order_id text NOT NULL,
    payment_key text NOT NULL,
    facts jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    last_answer text DEFAULT ''::text NOT NULL,
    resent_at timestamp with time zone,
    delivered_at timestamp with time zone,
    dead_at timestamp with time zone,
    CONSTRAINT events_audience_known CHECK ((audience = ANY (ARRAY['merchant'::text, 'customer'::text]))),
    CONSTRAINT events_kind_known CHECK ((kind = ANY (ARRAY['order.paid'::text, 'order.partially_canceled'::text, 'order.canceled'::text, 'order.reopened'::text, 'payment.failed'::text, 'payment.surplus'::text, 'order.store_check'::text])))
);

-- Name: TABLE events; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.events IS 'What the merchant and the customer must be told, written with the fact; a job delivers each at least once.';

-- Name: COLUMN events.resent_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.events.resent_at IS 'When somebody last asked for another delivery: its attempts are counted from then.';

-- Name: COLUMN events.dead_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.events.dead_at IS 'Given up after days of attempts; stays listed until somebody sends it again.';

-- Name: import_rows; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.import_rows (
    import_id bigint NOT NULL,
    line integer NOT NULL,
    payment_key text DEFAULT ''::text NOT NULL,
    order_id text DEFAULT ''::text NOT NULL,
    result text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    CONSTRAINT import_rows_line_positive CHECK ((line >= 1)),
    CONSTRAINT import_rows_reason_bounded CHECK ((length(reason) <= 500)),
    CONSTRAINT import_rows_result_known CHECK ((result = ANY (ARRAY['imported'::text, 'known'::text, 'rejected'::text])))
);

-- Name: TABLE import_rows; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.import_rows IS 'What became of each row, written in the transaction that put its payment in the books.';

-- Name: imports; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.imports (
    import_id bigint NOT NULL,
    source text NOT NULL,
    digest bytea NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    opening_at timestamp with time zone NOT NULL,
    started_by text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    rows integer NOT NULL,
    CONSTRAINT imports_name_bounded CHECK ((length(name) <= 300)),
    CONSTRAINT imports_source_known CHECK ((source = ANY (ARRAY['csv'::text, 'mirror'::text])))
);

-- Name: TABLE imports; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.imports IS 'What was taken over from the system before this one. The same file or stretch again goes on with its own row.';

-- Name: COLUMN imports.digest; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.imports.digest IS 'SHA-256 of the file, or of the stretch chosen from the mirror.';

-- Name: COLUMN imports.ended_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.imports.ended_at IS 'When every row had a result; NULL while one is left.';

-- Name: imports_import_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.imports ALTER COLUMN import_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.imports_import_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: incidents; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.incidents (
    incident_id bigint NOT NULL,
    run text NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    found integer DEFAULT 0 NOT NULL,
    unknown integer DEFAULT 0 NOT NULL,
    at_risk jsonb DEFAULT '{}'::jsonb NOT NULL,
    status text DEFAULT 'open'::text NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT incidents_end_is_whole CHECK (((status = 'resolved'::text) = (ended_at IS NOT NULL))),
    CONSTRAINT incidents_run_named CHECK ((run <> ''::text)),
    CONSTRAINT incidents_status_known CHECK ((status = ANY (ARRAY['open'::text, 'resolved'::text])))
);

-- Name: TABLE incidents; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.incidents IS 'More new mismatches in one run than a person can look at one by one: one cause, one alarm.';

-- Name: COLUMN incidents.run; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.incidents.run IS 'What found them, as in "audit recent 2026-11-30T12:00:00Z" or "list 41".';

-- Name: COLUMN incidents.found; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.incidents.found IS 'How many mismatches the run opened.';

-- Name: COLUMN incidents.unknown; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.incidents.unknown IS 'Of those, how many whose money at risk is not known.';

-- Name: COLUMN incidents.at_risk; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.incidents.at_risk IS 'Money at risk when they were found, minor units by currency.';

-- Name: incidents_incident_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.incidents ALTER COLUMN incident_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.incidents_incident_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: journal_balances; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.journal_balances (
    day date NOT NULL,
    occurred_on date NOT NULL,
    account text NOT NULL,
    currency text NOT NULL,
    debits bigint NOT NULL,
    credits bigint NOT NULL,
    CONSTRAINT journal_balances_credits CHECK ((credits >= 0)),
    CONSTRAINT journal_balances_debits CHECK ((debits >= 0))
);

-- Name: TABLE journal_balances; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.journal_balances IS 'What a section moves per account, by the Korean day on which it happened. Sums of the entries, checked against them by daesa verify.';

-- Name: journal_entries; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.journal_entries (
    transaction_id bigint NOT NULL,
    line integer NOT NULL,
    account text NOT NULL,
    currency text NOT NULL,
    amount bigint NOT NULL,
    CONSTRAINT journal_account_known CHECK ((account = ANY (ARRAY['gateway_receivable'::text, 'sales'::text, 'refunds'::text, 'suspense'::text, 'fees'::text, 'vat'::text, 'bank'::text, 'credits_issued'::text, 'customer_credits'::text, 'credits_used'::text]))),
    CONSTRAINT journal_amount_not_zero CHECK ((amount <> 0)),
    CONSTRAINT journal_currency_known CHECK ((currency = ANY (ARRAY['KRW'::text, 'USD'::text, 'JPY'::text, 'CREDIT'::text]))),
    CONSTRAINT journal_line_positive CHECK ((line >= 1))
);

-- Name: TABLE journal_entries; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.journal_entries IS 'Debits positive, credits negative; each transaction sums to zero per currency (I3).';

-- Name: journal_heads; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.journal_heads (
    sequence bigint NOT NULL,
    day date NOT NULL,
    from_id bigint NOT NULL,
    up_to_id bigint NOT NULL,
    transactions bigint NOT NULL,
    entries bigint NOT NULL,
    currencies text[] NOT NULL,
    debits bigint[] NOT NULL,
    content bytea NOT NULL,
    marks bytea NOT NULL,
    previous bytea NOT NULL,
    hash bytea NOT NULL,
    key_id text NOT NULL,
    signature bytea NOT NULL,
    sealed_at timestamp with time zone NOT NULL,
    CONSTRAINT journal_heads_content_whole CHECK ((length(content) = 32)),
    CONSTRAINT journal_heads_debit_per_currency CHECK ((cardinality(debits) = cardinality(currencies))),
    CONSTRAINT journal_heads_forward CHECK ((up_to_id >= from_id)),
    CONSTRAINT journal_heads_from_one CHECK ((sequence >= 1)),
    CONSTRAINT journal_heads_hash_whole CHECK ((length(hash) = 32)),
    CONSTRAINT journal_heads_marks_whole CHECK ((length(marks) = 32)),
    CONSTRAINT journal_heads_previous_whole CHECK ((length(previous) = 32)),
    CONSTRAINT journal_heads_signature_whole CHECK ((length(signature) = 64))
);

-- Name: TABLE journal_heads; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.journal_heads IS 'One signed head per business day, each over the one before: docs/journal.md says byte by byte over what.';

-- Name: COLUMN journal_heads.debits; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.journal_heads.debits IS 'Sum of the debits per currency, in the order of currencies.';

-- Name: COLUMN journal_heads.content; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.journal_heads.content IS 'SHA-256 over the hashes of the section''s transactions in the order of their ids.';

-- Name: COLUMN journal_heads.marks; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.journal_heads.marks IS 'SHA-256 over the section''s marks.';

-- Name: COLUMN journal_heads.previous; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.journal_heads.previous IS 'Hash of the head before; zeros before the first.';

-- Name: COLUMN journal_heads.key_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.journal_heads.key_id IS 'Which key signed: the first 16 hexadecimal digits of the SHA-256 of the public key.';

-- Name: journal_marks; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.journal_marks (
    sequence bigint NOT NULL,
    part integer NOT NULL,
    marks bytea NOT NULL
);

-- Name: TABLE journal_marks; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.journal_marks IS 'Id and the beginning of the hash of every sealed transaction: they tell which one was changed when a head no longer fits.';

-- Name: journal_sections; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.journal_sections (
    day date NOT NULL,
    from_id bigint NOT NULL,
    up_to_id bigint NOT NULL,
    transactions bigint NOT NULL,
    recorded_first timestamp with time zone,
    recorded_last timestamp with time zone,
    cut_at timestamp with time zone NOT NULL,
    CONSTRAINT journal_sections_count CHECK ((transactions >= 0)),
    CONSTRAINT journal_sections_forward CHECK ((up_to_id >= from_id)),
    CONSTRAINT journal_sections_from_not_negative CHECK ((from_id >= 0)),
    CONSTRAINT journal_sections_recorded CHECK (((transactions > 0) = ((recorded_first IS NOT NULL) AND (recorded_last IS NOT NULL))))
);

-- Name: TABLE journal_sections; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.journal_sections IS 'The journal cut at the end of each business day: transaction ids above from_id, up to and with up_to_id. No id in a section is ever filled later.';

-- Name: COLUMN journal_sections.day; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.journal_sections.day IS 'The business day that had ended; the section also holds what was recorded between its end and the cut.';

-- Name: COLUMN journal_sections.recorded_first; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.journal_sections.recorded_first IS 'The earliest recorded_at in the section, and below the latest: they tell what a balance as known at an instant must read.';

-- Name: journal_transactions; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.journal_transactions (
    transaction_id bigint NOT NULL,
    kind text NOT NULL,
    reference text NOT NULL,
    payment_key text,
    order_id text,
    customer_id text,
    occurred_at timestamp with time zone NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    written_by xid8 DEFAULT pg_current_xact_id() NOT NULL,
    CONSTRAINT journal_kind_known CHECK ((kind = ANY (ARRAY['capture'::text, 'cancel'::text, 'deposit_reversal'::text, 'credit_grant'::text, 'credit_spend'::text, 'credit_revoke'::text])))
);

-- Name: TABLE journal_transactions; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.journal_transactions IS 'Double-entry journal: one row per fact, never changed or deleted (I3).';

-- Name: COLUMN journal_transactions.reference; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.journal_transactions.reference IS 'What the fact is known by: a transaction key, a payment and capture number, a spend id.';

-- Name: COLUMN journal_transactions.written_by; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.journal_transactions.written_by IS 'The database transaction that wrote it; entries may only be added by the same one.';

-- Name: journal_transactions_transaction_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.journal_transactions ALTER COLUMN transaction_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.journal_transactions_transaction_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: list_covered; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.list_covered (
    only_row boolean DEFAULT true NOT NULL,
    stretches tstzmultirange NOT NULL,
    CONSTRAINT list_covered_is_one_row CHECK (only_row)
);

-- Name: TABLE list_covered; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.list_covered IS 'The stretches of time for which the gateway''s list was read completely; one row.';

-- Name: list_runs; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.list_runs (
    run_id bigint NOT NULL,
    reason text NOT NULL,
    window_from timestamp with time zone NOT NULL,
    window_to timestamp with time zone NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    pages integer DEFAULT 0 NOT NULL,
    rows integer DEFAULT 0 NOT NULL,
    fresh integer DEFAULT 0 NOT NULL,
    quarantined integer DEFAULT 0 NOT NULL,
    cursor text DEFAULT ''::text NOT NULL,
    result text NOT NULL,
    error text DEFAULT ''::text NOT NULL,
    missing integer DEFAULT 0 NOT NULL,
    turn integer DEFAULT 1 NOT NULL,
    paused_until timestamp with time zone,
    CONSTRAINT list_runs_reason_known CHECK ((reason = ANY (ARRAY['poll'::text, 'reread'::text, 'backfill'::text, 'make_up'::text]))),
    CONSTRAINT list_runs_result_known CHECK ((result = ANY (ARRAY['running'::text, 'complete'::text, 'failed'::text])))
);

-- Name: TABLE list_runs; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.list_runs IS 'Every read of the gateway''s list: what window, how many pages and rows, and how it ended.';

-- Name: COLUMN list_runs.cursor; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.list_runs.cursor IS 'The row after which the next page begins, written with the page before it: where a dead reader''s successor goes on.';

-- Name: COLUMN list_runs.missing; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.list_runs.missing IS 'Rows known of the window that this read did not show.';

-- Name: COLUMN list_runs.turn; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.list_runs.turn IS 'Counts the readers of this run. One that was overtaken finds another number and writes nothing more.';

-- Name: COLUMN list_runs.paused_until; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.list_runs.paused_until IS 'The gateway refused by rate: nobody reads the list before.';

-- Name: list_runs_run_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.list_runs ALTER COLUMN run_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.list_runs_run_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: mirror; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.mirror (
    transaction_key text NOT NULL,
    payment_key text NOT NULL,
    order_id text NOT NULL,
    merchant_id text DEFAULT ''::text NOT NULL,
    kind text NOT NULL,
    word text NOT NULL,
    currency text NOT NULL,
    amount bigint NOT NULL,
    negative boolean NOT NULL,
    at timestamp with time zone NOT NULL,
    day date NOT NULL,
    is_foreign boolean DEFAULT false NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    first_run bigint NOT NULL,
    missing_since timestamp with time zone,
    last_run bigint DEFAULT 0 NOT NULL,
    waiting_since timestamp with time zone,
    CONSTRAINT mirror_amount_not_negative CHECK ((amount >= 0)),
    CONSTRAINT mirror_kind_known CHECK ((kind = ANY (ARRAY['capture'::text, 'cancel'::text, 'none'::text, 'unrecognized'::text])))
);

-- Name: TABLE mirror; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.mirror IS 'The gateway''s own list of transactions, as read. Cancels in it are the set G of the identity.';

-- Name: COLUMN mirror.amount; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mirror.amount IS 'Absolute amount, minor units: the sign of cancel rows is not documented.';

-- Name: COLUMN mirror.day; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mirror.day IS 'Korean business day of the row.';

-- Name: COLUMN mirror.is_foreign; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mirror.is_foreign IS 'Belongs to another system on the same merchant id, by configuration; counted, never a mismatch.';

-- Name: COLUMN mirror.missing_since; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mirror.missing_since IS 'The list once had the row and, read twice, has it no more; NULL as long as it is listed.';

-- Name: COLUMN mirror.last_run; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mirror.last_run IS 'The read of the list that showed the row last.';

-- Name: COLUMN mirror.waiting_since; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mirror.waiting_since IS 'Of a capture: since when the list shows its row without money, as of an account that waits; NULL when it does not.';

-- Name: mismatch_trail; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.mismatch_trail (
    mismatch_id bigint NOT NULL,
    number integer NOT NULL,
    at timestamp with time zone NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    changed jsonb NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    gateway jsonb,
    books jsonb,
    CONSTRAINT mismatch_trail_action_known CHECK ((action = ANY (ARRAY['opened'::text, 'seen_changed'::text, 'acknowledged'::text, 'assigned'::text, 'resolution_proposed'::text, 'resolution_withdrawn'::text, 'resolved'::text, 'reopened'::text, 'noted'::text, 'joined_incident'::text]))),
    CONSTRAINT mismatch_trail_has_actor CHECK ((actor <> ''::text))
);

-- Name: TABLE mismatch_trail; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.mismatch_trail IS 'Every change of every mismatch, written by the database itself; rows are never changed or deleted.';

-- Name: COLUMN mismatch_trail.number; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mismatch_trail.number IS 'Counts the changes of one mismatch without a gap.';

-- Name: COLUMN mismatch_trail.actor; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mismatch_trail.actor IS 'system, os:<user>, api:<key> or person:<account>; db:<role> for a change made by hand in the database.';

-- Name: COLUMN mismatch_trail.changed; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mismatch_trail.changed IS 'The fields that changed, as they are afterwards: all of them together are the row.';

-- Name: COLUMN mismatch_trail.gateway; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mismatch_trail.gateway IS 'Evidence of the gateway''s side as it stood then; kept where somebody judged by it.';

-- Name: COLUMN mismatch_trail.books; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.mismatch_trail.books IS 'Evidence of our side as it stood then.';

-- Name: mismatches_mismatch_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.mismatches ALTER COLUMN mismatch_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.mismatches_mismatch_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: orders; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.orders (
    order_id text NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    currency text NOT NULL,
    amount bigint NOT NULL,
    customer_id text,
    name text DEFAULT ''::text NOT NULL,
    credits bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT orders_amount_bounded CHECK (((amount >= 1) AND (amount <= '1000000000000'::bigint))),
    CONSTRAINT orders_credits_bounded CHECK (((credits >= 0) AND (credits <= '1000000000000'::bigint))),
    CONSTRAINT orders_credits_need_customer CHECK (((credits = 0) OR (customer_id IS NOT NULL))),
    CONSTRAINT orders_currency_known CHECK ((currency = ANY (ARRAY['KRW'::text, 'USD'::text, 'JPY'::text]))),
    CONSTRAINT orders_customer_bounded CHECK (((length(customer_id) >= 1) AND (length(customer_id) <= 128))),
    CONSTRAINT orders_id_form CHECK ((order_id ~ '^[A-Za-z0-9_=-]{6,64}$'::text)),
    CONSTRAINT orders_name_bounded CHECK ((length(name) <= 100)),
    CONSTRAINT orders_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'paid'::text, 'partially_canceled'::text, 'canceled'::text, 'expired'::text])))
);

-- Name: TABLE orders; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.orders IS 'What buyers owe. The amount comes from the merchant''s server and from nowhere else.';

-- Name: COLUMN orders.credits; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.orders.credits IS 'Credits granted to the customer when the order is paid. Bounded, so that no sum of them overflows.';

-- Name: COLUMN orders.expires_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.orders.expires_at IS 'Without a live payment by then the order expires.';

-- Name: payments; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.payments (
    payment_key text NOT NULL,
    order_id text NOT NULL,
    merchant_id text DEFAULT ''::text NOT NULL,
    status text NOT NULL,
    currency text NOT NULL,
    amount bigint NOT NULL,
    captured bigint DEFAULT 0 NOT NULL,
    canceled bigint DEFAULT 0 NOT NULL,
    surplus boolean DEFAULT false NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    generation integer DEFAULT 1 NOT NULL,
    key_first_used_at timestamp with time zone,
    intended_at timestamp with time zone,
    undecided_since timestamp with time zone,
    waiting_seen_at timestamp with time zone,
    virtual_account boolean DEFAULT false NOT NULL,
    secret_digest bytea,
    reason text DEFAULT ''::text NOT NULL,
    method text DEFAULT ''::text NOT NULL,
    credits_granted bigint DEFAULT 0 NOT NULL,
    credits_revoked bigint DEFAULT 0 NOT NULL,
    supplied bigint,
    vat bigint,
    tax_free bigint,
    tax_exempt bigint,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    money_seen_at timestamp with time zone,
    CONSTRAINT payments_amount_positive CHECK ((amount > 0)),
    CONSTRAINT payments_attempt_not_negative CHECK ((attempt >= 0)),
    CONSTRAINT payments_canceled_within_captured CHECK (((canceled >= 0) AND (canceled <= captured))),
    CONSTRAINT payments_captured_within_amount CHECK (((captured = 0) OR (captured = amount))),
    CONSTRAINT payments_confirming_was_intended CHECK (((status <> 'confirming'::text) OR ((attempt >= 1) AND (intended_at IS NOT NULL)))),
    CONSTRAINT payments_credits_bounded CHECK (((credits_revoked >= 0) AND (credits_revoked <= credits_granted))),
    CONSTRAINT payments_currency_known CHECK ((currency = ANY (ARRAY['KRW'::text, 'USD'::text, 'JPY'::text]))),
    CONSTRAINT payments_generation_positive CHECK ((generation >= 1)),
    CONSTRAINT payments_key_form CHECK ((payment_key ~ '^[A-Za-z0-9_=-]{1,200}$'::text)),
    CONSTRAINT payments_method_bounded CHECK ((length(method) <= 100)),
    CONSTRAINT payments_reason_bounded CHECK ((length(reason) <= 200)),
    CONSTRAINT payments_status_follows_money CHECK (
CASE status
    WHEN 'done'::text THEN ((captured > 0) AND (canceled = 0))
    WHEN 'partially_canceled'::text THEN ((canceled > 0) AND (canceled < captured))
    WHEN 'canceled'::text THEN (canceled = captured)
    ELSE ((captured = 0) AND (canceled = 0))
END),
    CONSTRAINT payments_status_known CHECK ((status = ANY (ARRAY['ready'::text, 'confirming'::text, 'unknown'::text, 'failed'::text, 'waiting_for_deposit'::text, 'done'::text, 'partially_canceled'::text, 'canceled'::text]))),
    CONSTRAINT payments_undecided_is_dated CHECK (((status = ANY (ARRAY['confirming'::text, 'unknown'::text])) = (undecided_since IS NOT NULL)))
);

-- Name: TABLE payments; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.payments IS 'One row per payment key. Only the ledger''s Record, Intend and Release write it.';

-- Name: COLUMN payments.amount; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.payments.amount IS 'What was to be captured: the order''s amount, minor units.';

-- Name: COLUMN payments.captured; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.payments.captured IS 'Money taken and not fallen back (I2).';

-- Name: COLUMN payments.surplus; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.payments.surplus IS 'Does not hold its order: another payment does, or the gateway has never known this one. Money for a held order waits in suspense.';

-- Name: COLUMN payments.attempt; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.payments.attempt IS 'Counts confirm calls; compare-and-set on it makes one attempt own the row.';

-- Name: COLUMN payments.generation; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.payments.generation IS 'Numbers the gateway idempotency key; a new one only after a definite answer.';

-- Name: COLUMN payments.waiting_seen_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.payments.waiting_seen_at IS 'A paid virtual account was seen without its deposit, first then; a later look that says the same takes the deposit back.';

-- Name: COLUMN payments.secret_digest; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.payments.secret_digest IS 'SHA-256 of the payment''s secret, to check deposit callbacks; the secret itself is not kept.';

-- Name: COLUMN payments.supplied; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.payments.supplied IS 'The gateway''s own tax split of the balance, as last told.';

-- Name: COLUMN payments.money_seen_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.payments.money_seen_at IS 'A deposit that was taken back was seen standing again, first then; a later look that says the same books it again.';

-- Name: rate_limits; Type: TABLE; Schema: public; Owner: -

CREATE UNLOGGED TABLE public.rate_limits (
    rule text NOT NULL,
    source text NOT NULL,
    full_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_threshold='1000');

-- Name: TABLE rate_limits; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.rate_limits IS 'What each source has spent of each rate limit. A row is changed by every request that passes and by none that is refused; those whose allowance is whole again are taken away each minute. There is no further index, so that a change stays on its page.';

-- Name: COLUMN rate_limits.source; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.rate_limits.source IS 'An IPv4 address, or the /64 of an IPv6 address.';

-- Name: COLUMN rate_limits.full_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.rate_limits.full_at IS 'When the allowance is whole again. Each request moves it by one interval; further ahead than the whole allowance it never is.';

-- Name: second_person; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.second_person (
    only_row boolean DEFAULT true NOT NULL,
    above bigint NOT NULL,
    set_at timestamp with time zone NOT NULL,
    CONSTRAINT second_person_is_one_row CHECK (only_row),
    CONSTRAINT second_person_not_negative CHECK ((above >= 0))
);

-- Name: TABLE second_person; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.second_person IS 'Above how many won at risk a second person must confirm a resolution; one row. Set by the service at its start, so that no command can be told otherwise.';

-- Name: sessions; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.sessions (
    token text NOT NULL,
    data bytea NOT NULL,
    expiry timestamp with time zone NOT NULL
);

-- Name: TABLE sessions; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.sessions IS 'Who is signed in. The columns are those of the session store.';

-- Name: COLUMN sessions.token; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.sessions.token IS 'SHA-256 of what the browser has.';

-- Name: work; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.work (
    work_id bigint NOT NULL,
    kind text NOT NULL,
    payment_key text NOT NULL,
    order_id text,
    transaction_key text,
    request_id text,
    subject text GENERATED ALWAYS AS (
CASE
    WHEN (transaction_key IS NOT NULL) THEN ('cancel:'::text || transaction_key)
    WHEN (request_id IS NOT NULL) THEN ('request:'::text || request_id)
    ELSE kind
END) STORED NOT NULL,
    currency text,
    amount bigint,
    opened_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    deadline timestamp with time zone NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    last_asked_at timestamp with time zone,
    last_answer text DEFAULT ''::text NOT NULL,
    notice_failed_at timestamp with time zone,
    notice_attempt integer,
    notice_next_at timestamp with time zone,
    closed_at timestamp with time zone,
    closed_as text,
    told_at timestamp with time zone,
    CONSTRAINT work_closing_is_whole CHECK (((closed_at IS NULL) = (closed_as IS NULL))),
    CONSTRAINT work_closing_known CHECK ((closed_as = ANY (ARRAY['settled'::text, 'refuted'::text, 'expired'::text, 'aborted'::text]))),
    CONSTRAINT work_kind_known CHECK ((kind = ANY (ARRAY['confirm_unknown'::text, 'cancel_claimed'::text, 'cancel_listed'::text, 'cancel_in_progress'::text, 'deposit_watch'::text, 'cancel_request'::text, 'parked'::text])))
);

-- Name: TABLE work; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.work IS 'Everything still owed an answer. Jobs only wake the sweeper; due times and deadlines live here.';

-- Name: COLUMN work.subject; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.work.subject IS 'What is owed: one open row per payment and subject.';

-- Name: COLUMN work.deadline; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.work.deadline IS 'For cancels the last chance: first failure + 3 d 19 h 1 min + 15 min.';

-- Name: COLUMN work.notice_attempt; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.work.notice_attempt IS 'Redelivery n of 7 that failed last, as the sender counts; 0 is the first delivery.';

-- Name: COLUMN work.notice_next_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.work.notice_next_at IS 'When the sender is expected again.';

-- Name: COLUMN work.told_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.work.told_at IS 'Of a deposit''s watch: when the gateway wrote the newest notice that the account waits and that proved itself by the payment''s secret.';

-- Name: work_work_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.work ALTER COLUMN work_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.work_work_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: acceptances acceptances_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.acceptances
    ADD CONSTRAINT acceptances_pkey PRIMARY KEY (acceptance_id);

-- Name: accounts accounts_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (account_id);

-- Name: api_keys api_keys_digest_is_one; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_digest_is_one UNIQUE (digest);

-- Name: api_keys api_keys_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (key_id);

-- Name: api_keys api_keys_prefix_is_one; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_prefix_is_one UNIQUE (prefix);

-- Name: audit_dirty audit_dirty_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.audit_dirty
    ADD CONSTRAINT audit_dirty_pkey PRIMARY KEY (dirty_id);

-- Name: audit_judged audit_judged_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.audit_judged
    ADD CONSTRAINT audit_judged_pkey PRIMARY KEY (subject, key);

-- Name: audit_runs audit_runs_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.audit_runs
    ADD CONSTRAINT audit_runs_pkey PRIMARY KEY (run_id);

-- Name: audit_state audit_state_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.audit_state
    ADD CONSTRAINT audit_state_pkey PRIMARY KEY (only_row);

-- Name: audit_totals audit_totals_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.audit_totals
    ADD CONSTRAINT audit_totals_pkey PRIMARY KEY (day, line, currency);

-- Name: books_settings books_settings_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.books_settings
    ADD CONSTRAINT books_settings_pkey PRIMARY KEY (only_row);

-- Name: caller_requests caller_requests_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.caller_requests
    ADD CONSTRAINT caller_requests_pkey PRIMARY KEY (scope, key);

-- Name: cancel_requests cancel_requests_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.cancel_requests
    ADD CONSTRAINT cancel_requests_pkey PRIMARY KEY (request_id);

-- Name: cancels cancels_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.cancels
    ADD CONSTRAINT cancels_pkey PRIMARY KEY (transaction_key);

-- Name: captures captures_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.captures
    ADD CONSTRAINT captures_pkey PRIMARY KEY (payment_key, number);

-- Name: credit_accounts credit_accounts_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.credit_accounts
    ADD CONSTRAINT credit_accounts_pkey PRIMARY KEY (customer_id);

-- Name: credit_spends credit_spends_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.credit_spends
    ADD CONSTRAINT credit_spends_pkey PRIMARY KEY (spend_id);

-- Name: day_rows day_rows_movement_known; Type: CHECK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE public.day_rows
    ADD CONSTRAINT day_rows_movement_known CHECK ((movement = ANY (ARRAY['capture'::text, 'cancel'::text, ''::text]))) NOT VALID;

-- Name: day_rows day_rows_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.day_rows
    ADD CONSTRAINT day_rows_pkey PRIMARY KEY (day, movement, transaction_key, payment_key, first_run);

-- Name: day_rows day_rows_standing_known; Type: CHECK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE public.day_rows
    ADD CONSTRAINT day_rows_standing_known CHECK ((standing = ANY (ARRAY['applied'::text, 'pending'::text, 'accepted'::text, 'not_yet_listed'::text, 'accepted_beside'::text, 'breaks'::text]))) NOT VALID;

-- Name: day_signoffs day_signoffs_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.day_signoffs
    ADD CONSTRAINT day_signoffs_pkey PRIMARY KEY (signoff_id);

-- Name: days_to_close days_to_close_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.days_to_close
    ADD CONSTRAINT days_to_close_pkey PRIMARY KEY (day);

-- Name: deeds deeds_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.deeds
    ADD CONSTRAINT deeds_pkey PRIMARY KEY (deed_id);

-- Name: deliveries deliveries_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (delivery_id);

-- Name: events events_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (event_id);

-- Name: import_rows import_rows_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.import_rows
    ADD CONSTRAINT import_rows_pkey PRIMARY KEY (import_id, line);

-- Name: imports imports_one_per_content; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.imports
    ADD CONSTRAINT imports_one_per_content UNIQUE (source, digest);

-- Name: imports imports_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.imports
    ADD CONSTRAINT imports_pkey PRIMARY KEY (import_id);

-- Name: incidents incidents_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.incidents
    ADD CONSTRAINT incidents_pkey PRIMARY KEY (incident_id);

-- Name: journal_balances journal_balances_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.journal_balances
    ADD CONSTRAINT journal_balances_pkey PRIMARY KEY (day, occurred_on, account, currency);

-- Name: journal_entries journal_entries_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.journal_entries
    ADD CONSTRAINT journal_entries_pkey PRIMARY KEY (transaction_id, line);

-- Name: journal_heads journal_heads_one_per_day; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.journal_heads
    ADD CONSTRAINT journal_heads_one_per_day UNIQUE (day);

-- Name: journal_heads journal_heads_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.journal_heads
    ADD CONSTRAINT journal_heads_pkey PRIMARY KEY (sequence);

-- Name: journal_marks journal_marks_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.journal_marks
    ADD CONSTRAINT journal_marks_pkey PRIMARY KEY (sequence, part);

-- Name: journal_transactions journal_one_per_fact; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.journal_transactions
    ADD CONSTRAINT journal_one_per_fact UNIQUE (kind, reference);

-- Name: journal_sections journal_sections_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.journal_sections
    ADD CONSTRAINT journal_sections_pkey PRIMARY KEY (day);

-- Name: journal_transactions journal_transactions_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.journal_transactions
    ADD CONSTRAINT journal_transactions_pkey PRIMARY KEY (transaction_id);

-- Name: list_covered list_covered_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.list_covered
    ADD CONSTRAINT list_covered_pkey PRIMARY KEY (only_row);

-- Name: list_runs list_runs_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.list_runs
    ADD CONSTRAINT list_runs_pkey PRIMARY KEY (run_id);

-- Name: mirror mirror_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.mirror
    ADD CONSTRAINT mirror_pkey PRIMARY KEY (transaction_key);

-- Name: mismatch_trail mismatch_trail_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.mismatch_trail
    ADD CONSTRAINT mismatch_trail_pkey PRIMARY KEY (mismatch_id, number);

-- Name: mismatches mismatches_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.mismatches
    ADD CONSTRAINT mismatches_pkey PRIMARY KEY (mismatch_id);

-- Name: orders orders_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (order_id);

-- Name: payments payments_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.payments
    ADD CONSTRAINT payments_pkey PRIMARY KEY (payment_key);

-- Name: rate_limits rate_limits_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.rate_limits
    ADD CONSTRAINT rate_limits_pkey PRIMARY KEY (rule, source);

-- Name: second_person second_person_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.second_person
    ADD CONSTRAINT second_person_pkey PRIMARY KEY (only_row);

-- Name: sessions sessions_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (token);

-- Name: work work_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.work
    ADD CONSTRAINT work_pkey PRIMARY KEY (work_id);

-- Name: acceptances_due; Type: INDEX; Schema: public; Owner: -

CREATE INDEX acceptances_due ON public.acceptances USING btree (due_at) WHERE (due_at IS NOT NULL);

-- Name: acceptances_ended; Type: INDEX; Schema: public; Owner: -

CREATE INDEX acceptances_ended ON public.acceptances USING btree (ended_at) WHERE (due_at IS NULL);

-- Name: acceptances_of_order; Type: INDEX; Schema: public; Owner: -

CREATE INDEX acceptances_of_order ON public.acceptances USING btree (order_id);

-- Name: acceptances_one_asking_per_order; Type: INDEX; Schema: public; Owner: -

CREATE UNIQUE INDEX acceptances_one_asking_per_order ON public.acceptances USING btree (order_id) WHERE (state = 'asking'::text);

-- Name: acceptances_open; Type: INDEX; Schema: public; Owner: -

CREATE INDEX acceptances_open ON public.acceptances USING btree (state, owed_at) WHERE (state = ANY (ARRAY['asking'::text, 'held'::text, 'releasing'::text]));

-- Name: accounts_name_is_one; Type: INDEX; Schema: public; Owner: -

CREATE UNIQUE INDEX accounts_name_is_one ON public.accounts USING btree (lower(name));

-- Name: api_keys_one_is_current; Type: INDEX; Schema: public; Owner: -

CREATE UNIQUE INDEX api_keys_one_is_current ON public.api_keys USING btree (lower(name)) WHERE ((ends_at IS NULL) AND (revoked_at IS NULL));

-- Name: audit_judged_by_clock; Type: INDEX; Schema: public; Owner: -

CREATE INDEX audit_judged_by_clock ON public.audit_judged USING btree (recheck_at) WHERE (recheck_at IS NOT NULL);

-- Name: audit_judged_by_list; Type: INDEX; Schema: public; Owner: -

CREATE INDEX audit_judged_by_list ON public.audit_judged USING btree (recheck_as_of) WHERE (recheck_as_of IS NOT NULL);

-- Name: audit_judged_cancels; Type: INDEX; Schema: public; Owner: -

CREATE INDEX audit_judged_cancels ON public.audit_judged USING hash (key) WITH (fillfactor='50') WHERE (subject = 'cancel'::text);

-- Name: audit_judged_captures; Type: INDEX; Schema: public; Owner: -

CREATE INDEX audit_judged_captures ON public.audit_judged USING hash (payment_key) WHERE (subject = 'capture'::text);

-- Name: audit_judged_of_order; Type: INDEX; Schema: public; Owner: -

CREATE INDEX audit_judged_of_order ON public.audit_judged USING btree (order_id) WHERE (subject = 'cancel'::text);

-- Name: audit_judged_open; Type: INDEX; Schema: public; Owner: -

CREATE INDEX audit_judged_open ON public.audit_judged USING btree (open_line, open_currency, since, key COLLATE "C") WHERE (open_line IS NOT NULL);

-- Name: audit_runs_by_day; Type: INDEX; Schema: public; Owner: -

CREATE INDEX audit_runs_by_day ON public.audit_runs USING btree (day, started_at DESC) WHERE (day IS NOT NULL);

-- Name: audit_runs_by_scope; Type: INDEX; Schema: public; Owner: -

CREATE INDEX audit_runs_by_scope ON public.audit_runs USING btree (scope, started_at DESC);

-- Name: audit_runs_closed; Type: INDEX; Schema: public; Owner: -

CREATE INDEX audit_runs_closed ON public.audit_runs USING btree (day, run_id) WHERE (closed IS NOT NULL);

-- Name: caller_requests_by_time; Type: INDEX; Schema: public; Owner: -

CREATE INDEX caller_requests_by_time ON public.caller_requests USING btree (created_at);

-- Name: cancel_requests_in_flight; Type: INDEX; Schema: public; Owner: -

CREATE INDEX cancel_requests_in_flight ON public.cancel_requests USING btree (payment_key) WHERE (status = ANY (ARRAY['sending'::text, 'unknown'::text, 'in_progress'::text]));

-- Name: cancel_requests_of_payment; Type: INDEX; Schema: public; Owner: -

CREATE INDEX cancel_requests_of_payment ON public.cancel_requests USING btree (payment_key);

-- Name: cancel_requests_with_account; Type: INDEX; Schema: public; Owner: -

CREATE INDEX cancel_requests_with_account ON public.cancel_requests USING btree (key_first_used_at) WHERE (refund_account IS NOT NULL);

-- Name: cancels_by_time; Type: INDEX; Schema: public; Owner: -

CREATE INDEX cancels_by_time ON public.cancels USING btree (canceled_at);

-- Name: cancels_of_day_by_record; Type: INDEX; Schema: public; Owner: -

CREATE INDEX cancels_of_day_by_record ON public.cancels USING btree ((((canceled_at AT TIME ZONE 'Asia/Seoul'::text))::date), recorded_at);

-- Name: cancels_of_payment; Type: INDEX; Schema: public; Owner: -

CREATE INDEX cancels_of_payment ON public.cancels USING btree (payment_key);

-- Name: cancels_void_of_payment; Type: INDEX; Schema: public; Owner: -

CREATE INDEX cancels_void_of_payment ON public.cancels USING hash (payment_key) WHERE (amount = 0);

-- Name: captures_by_payment; Type: INDEX; Schema: public; Owner: -

CREATE INDEX captures_by_payment ON public.captures USING hash (payment_key) WITH (fillfactor='50');

-- Name: captures_by_reversal; Type: INDEX; Schema: public; Owner: -

CREATE INDEX captures_by_reversal ON public.captures USING btree (reversed_at) WHERE (reversed_at IS NOT NULL);

-- Name: captures_by_time; Type: INDEX; Schema: public; Owner: -

CREATE INDEX captures_by_time ON public.captures USING btree (captured_at);

-- Name: captures_of_day_by_record; Type: INDEX; Schema: public; Owner: -

CREATE INDEX captures_of_day_by_record ON public.captures USING btree ((((captured_at AT TIME ZONE 'Asia/Seoul'::text))::date), recorded_at);

-- Name: captures_of_transaction; Type: INDEX; Schema: public; Owner: -

CREATE INDEX captures_of_transaction ON public.captures USING btree (transaction_key) WHERE (transaction_key IS NOT NULL);

-- Name: captures_one_per_transaction; Type: INDEX; Schema: public; Owner: -

CREATE UNIQUE INDEX captures_one_per_transaction ON public.captures USING btree (transaction_key) WHERE ((transaction_key IS NOT NULL) AND (reversed_at IS NULL));

-- Name: captures_one_standing; Type: INDEX; Schema: public; Owner: -

CREATE UNIQUE INDEX captures_one_standing ON public.captures USING btree (payment_key) WHERE (reversed_at IS NULL);

-- Name: day_rows_by_first_run; Type: INDEX; Schema: public; Owner: -

CREATE INDEX day_rows_by_first_run ON public.day_rows USING btree (day, first_run);

-- Name: day_rows_by_gone_run; Type: INDEX; Schema: public; Owner: -

CREATE INDEX day_rows_by_gone_run ON public.day_rows USING btree (day, gone_run) WHERE (gone_run IS NOT NULL);

-- Name: day_rows_standing_now; Type: INDEX; Schema: public; Owner: -

CREATE UNIQUE INDEX day_rows_standing_now ON public.day_rows USING btree (day, movement, transaction_key, payment_key) WHERE (gone_run IS NULL);

-- Name: day_signoffs_of_day; Type: INDEX; Schema: public; Owner: -

CREATE INDEX day_signoffs_of_day ON public.day_signoffs USING btree (day, signoff_id);

-- Name: day_signoffs_of_run; Type: INDEX; Schema: public; Owner: -

CREATE INDEX day_signoffs_of_run ON public.day_signoffs USING btree (run_id);

-- Name: deliveries_by_time; Type: INDEX; Schema: public; Owner: -

CREATE INDEX deliveries_by_time ON public.deliveries USING btree (received_at);

-- Name: deliveries_of_payment; Type: INDEX; Schema: public; Owner: -

CREATE INDEX deliveries_of_payment ON public.deliveries USING btree (payment_key, received_at) WHERE (payment_key IS NOT NULL);

-- Name: deliveries_unfinished; Type: INDEX; Schema: public; Owner: -

CREATE INDEX deliveries_unfinished ON public.deliveries USING btree (received_at) WHERE (outcome = 'received'::text);

-- Name: events_dead; Type: INDEX; Schema: public; Owner: -

CREATE INDEX events_dead ON public.events USING btree (created_at) WHERE ((dead_at IS NOT NULL) AND (delivered_at IS NULL));

-- Name: events_delivered; Type: INDEX; Schema: public; Owner: -

CREATE INDEX events_delivered ON public.events USING btree (created_at) WHERE (delivered_at IS NOT NULL);

-- Name: events_of_order; Type: INDEX; Schema: public; Owner: -

CREATE INDEX events_of_order ON public.events USING btree (order_id);

-- Name: events_pending; Type: INDEX; Schema: public; Owner: -

CREATE INDEX events_pending ON public.events USING btree (created_at) WHERE ((dead_at IS NULL) AND (delivered_at IS NULL));

-- Name: import_rows_of_payment; Type: INDEX; Schema: public; Owner: -

CREATE INDEX import_rows_of_payment ON public.import_rows USING btree (payment_key) WHERE (payment_key <> ''::text);

-- Name: incidents_by_time; Type: INDEX; Schema: public; Owner: -

CREATE INDEX incidents_by_time ON public.incidents USING btree (opened_at);

-- Name: incidents_one_per_run; Type: INDEX; Schema: public; Owner: -

CREATE UNIQUE INDEX incidents_one_per_run ON public.incidents USING btree (run);

-- Name: incidents_open; Type: INDEX; Schema: public; Owner: -

CREATE INDEX incidents_open ON public.incidents USING btree (incident_id) WHERE (status = 'open'::text);

-- Name: journal_by_occurrence; Type: INDEX; Schema: public; Owner: -

CREATE INDEX journal_by_occurrence ON public.journal_transactions USING btree (occurred_at);

-- Name: journal_heads_by_end; Type: INDEX; Schema: public; Owner: -

CREATE INDEX journal_heads_by_end ON public.journal_heads USING btree (up_to_id, sequence);

-- Name: journal_heads_by_hash; Type: INDEX; Schema: public; Owner: -

CREATE INDEX journal_heads_by_hash ON public.journal_heads USING btree (encode(hash, 'hex'::text));

-- Name: journal_of_customer; Type: INDEX; Schema: public; Owner: -

CREATE INDEX journal_of_customer ON public.journal_transactions USING btree (customer_id) WHERE (customer_id IS NOT NULL);

-- Name: journal_of_payment; Type: INDEX; Schema: public; Owner: -

CREATE INDEX journal_of_payment ON public.journal_transactions USING btree (payment_key) WHERE (payment_key IS NOT NULL);

-- Name: list_runs_by_start; Type: INDEX; Schema: public; Owner: -

CREATE INDEX list_runs_by_start ON public.list_runs USING btree (started_at DESC);

-- Name: list_runs_by_window; Type: INDEX; Schema: public; Owner: -

CREATE INDEX list_runs_by_window ON public.list_runs USING gist (tstzrange(window_from, window_to, '[]'::text));

-- Name: list_runs_made_up; Type: INDEX; Schema: public; Owner: -

CREATE INDEX list_runs_made_up ON public.list_runs USING btree (run_id DESC) WHERE (reason = 'make_up'::text);

-- Name: list_runs_paused; Type: INDEX; Schema: public; Owner: -

CREATE INDEX list_runs_paused ON public.list_runs USING btree (paused_until) WHERE (paused_until IS NOT NULL);

-- Name: list_runs_polled; Type: INDEX; Schema: public; Owner: -

CREATE INDEX list_runs_polled ON public.list_runs USING btree (window_to) WHERE ((result = 'complete'::text) AND (reason = 'poll'::text));

-- Name: list_runs_running; Type: INDEX; Schema: public; Owner: -

CREATE INDEX list_runs_running ON public.list_runs USING btree (run_id) WHERE (result = 'running'::text);

-- Name: mirror_by_day; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mirror_by_day ON public.mirror USING btree (day, kind);

-- Name: mirror_by_payment; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mirror_by_payment ON public.mirror USING hash (payment_key) WITH (fillfactor='50');

-- Name: mirror_by_time; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mirror_by_time ON public.mirror USING btree (at);

-- Name: mirror_cancels; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mirror_cancels ON public.mirror USING hash (transaction_key) WITH (fillfactor='50') WHERE ((kind = 'cancel'::text) AND (NOT is_foreign));

-- Name: mirror_cancels_of_payment; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mirror_cancels_of_payment ON public.mirror USING btree (payment_key) WHERE (kind = 'cancel'::text);

-- Name: mirror_missing; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mirror_missing ON public.mirror USING btree (missing_since) WHERE (missing_since IS NOT NULL);

-- Name: mirror_of_day_by_seen; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mirror_of_day_by_seen ON public.mirror USING btree (day, first_seen_at);

-- Name: mirror_of_order; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mirror_of_order ON public.mirror USING btree (order_id);

-- Name: mirror_waiting; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mirror_waiting ON public.mirror USING btree (waiting_since) WHERE (waiting_since IS NOT NULL);

-- Name: mirror_without_money; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mirror_without_money ON public.mirror USING btree (at) WHERE ((kind = 'none'::text) OR is_foreign);

-- Name: mismatches_accepted_contradictions; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mismatches_accepted_contradictions ON public.mismatches USING btree (mismatch_id) WHERE ((resolved_as = 'accepted'::text) AND (transaction_key IS NOT NULL) AND (kind = ANY (ARRAY['history_changed'::text, 'quarantined'::text, 'unrecognized_status'::text, 'journal_differs'::text])));

-- Name: mismatches_accepted_of_payment; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mismatches_accepted_of_payment ON public.mismatches USING btree (payment_key) WHERE ((resolved_as = 'accepted'::text) AND (payment_key IS NOT NULL));

-- Name: mismatches_accepted_of_transaction; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mismatches_accepted_of_transaction ON public.mismatches USING btree (transaction_key) WHERE ((resolved_as = 'accepted'::text) AND (transaction_key IS NOT NULL));

-- Name: mismatches_by_time; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mismatches_by_time ON public.mismatches USING btree (opened_at);

-- Name: mismatches_not_resolved; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mismatches_not_resolved ON public.mismatches USING btree (mismatch_id) WHERE (status <> 'resolved'::text);

-- Name: mismatches_of_assignee; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mismatches_of_assignee ON public.mismatches USING btree (assignee, mismatch_id) WHERE (assignee IS NOT NULL);

-- Name: mismatches_of_incident; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mismatches_of_incident ON public.mismatches USING btree (incident_id, mismatch_id) WHERE (incident_id IS NOT NULL);

-- Name: mismatches_of_kind; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mismatches_of_kind ON public.mismatches USING btree (kind, mismatch_id);

-- Name: mismatches_of_order; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mismatches_of_order ON public.mismatches USING btree (order_id) WHERE (order_id IS NOT NULL);

-- Name: mismatches_of_payment; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mismatches_of_payment ON public.mismatches USING btree (payment_key) WHERE (payment_key IS NOT NULL);

-- Name: mismatches_of_run; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mismatches_of_run ON public.mismatches USING btree (opened_run) WHERE ((status <> 'resolved'::text) AND (opened_run <> ''::text));

-- Name: mismatches_of_transaction; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mismatches_of_transaction ON public.mismatches USING btree (transaction_key) WHERE (transaction_key IS NOT NULL);

-- Name: mismatches_one_per_fingerprint; Type: INDEX; Schema: public; Owner: -

CREATE UNIQUE INDEX mismatches_one_per_fingerprint ON public.mismatches USING btree (fingerprint);

-- Name: mismatches_open_of_incident; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mismatches_open_of_incident ON public.mismatches USING btree (incident_id) WHERE ((incident_id IS NOT NULL) AND (status <> 'resolved'::text));

-- Name: mismatches_resolved; Type: INDEX; Schema: public; Owner: -

CREATE INDEX mismatches_resolved ON public.mismatches USING btree (resolved_at) WHERE (status = 'resolved'::text);

-- Name: orders_expiring; Type: INDEX; Schema: public; Owner: -

CREATE INDEX orders_expiring ON public.orders USING btree (expires_at) WHERE (status = 'pending'::text);

-- Name: payments_of_order; Type: INDEX; Schema: public; Owner: -

CREATE INDEX payments_of_order ON public.payments USING btree (order_id);

-- Name: payments_one_live_per_order; Type: INDEX; Schema: public; Owner: -

CREATE UNIQUE INDEX payments_one_live_per_order ON public.payments USING btree (order_id) WHERE ((status = ANY (ARRAY['confirming'::text, 'unknown'::text, 'waiting_for_deposit'::text, 'done'::text, 'partially_canceled'::text, 'canceled'::text])) AND (NOT surplus));

-- Name: payments_undecided; Type: INDEX; Schema: public; Owner: -

CREATE INDEX payments_undecided ON public.payments USING btree (undecided_since) WHERE (undecided_since IS NOT NULL);

-- Name: sessions_expiry; Type: INDEX; Schema: public; Owner: -

CREATE INDEX sessions_expiry ON public.sessions USING btree (expiry);

-- Name: work_closed; Type: INDEX; Schema: public; Owner: -

CREATE INDEX work_closed ON public.work USING btree (closed_at) WHERE (closed_at IS NOT NULL);

-- Name: work_closed_of_payment; Type: INDEX; Schema: public; Owner: -

CREATE INDEX work_closed_of_payment ON public.work USING btree (payment_key) WHERE (closed_at IS NOT NULL);

-- Name: work_due; Type: INDEX; Schema: public; Owner: -

CREATE INDEX work_due ON public.work USING btree (due_at) WHERE ((closed_at IS NULL) AND (kind <> ALL (ARRAY['cancel_claimed'::text, 'parked'::text])));

-- Name: work_due_claimed; Type: INDEX; Schema: public; Owner: -

CREATE INDEX work_due_claimed ON public.work USING btree (due_at) WHERE ((closed_at IS NULL) AND (kind = 'cancel_claimed'::text));

-- Name: work_due_parked; Type: INDEX; Schema: public; Owner: -

CREATE INDEX work_due_parked ON public.work USING btree (due_at) WHERE ((closed_at IS NULL) AND (kind = 'parked'::text));

-- Name: work_one_open_per_subject; Type: INDEX; Schema: public; Owner: -

CREATE UNIQUE INDEX work_one_open_per_subject ON public.work USING btree (payment_key, subject) WHERE (closed_at IS NULL);

-- Name: work_open_by_request; Type: INDEX; Schema: public; Owner: -

CREATE INDEX work_open_by_request ON public.work USING btree (request_id) WHERE ((closed_at IS NULL) AND (request_id IS NOT NULL));

-- Name: work_open_by_transaction; Type: INDEX; Schema: public; Owner: -

CREATE INDEX work_open_by_transaction ON public.work USING btree (transaction_key) WHERE ((closed_at IS NULL) AND (transaction_key IS NOT NULL));

-- Name: work_pending; Type: INDEX; Schema: public; Owner: -

CREATE INDEX work_pending ON public.work USING btree (deadline, work_id) WHERE ((closed_at IS NULL) AND (kind = ANY (ARRAY['cancel_claimed'::text, 'cancel_listed'::text, 'cancel_in_progress'::text, 'cancel_request'::text])));

-- Name: audit_runs audit_runs_append_only; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER audit_runs_append_only BEFORE DELETE OR UPDATE ON public.audit_runs FOR EACH ROW EXECUTE FUNCTION public.audit_runs_are_append_only();

-- Name: audit_runs audit_runs_no_truncate; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER audit_runs_no_truncate BEFORE TRUNCATE ON public.audit_runs FOR EACH STATEMENT EXECUTE FUNCTION public.audit_runs_are_append_only();

-- Name: cancels cancels_dirty; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER cancels_dirty AFTER INSERT OR DELETE ON public.cancels FOR EACH ROW EXECUTE FUNCTION public.audit_dirty_cancels();

-- Name: cancels cancels_dirty_changed; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER cancels_dirty_changed AFTER UPDATE ON public.cancels FOR EACH ROW WHEN (((((((old.transaction_key IS DISTINCT FROM new.transaction_key) OR (old.payment_key IS DISTINCT FROM new.payment_key)) OR (old.order_id IS DISTINCT FROM new.order_id)) OR (old.currency IS DISTINCT FROM new.currency)) OR (old.amount IS DISTINCT FROM new.amount)) OR (old.canceled_at IS DISTINCT FROM new.canceled_at))) EXECUTE FUNCTION public.audit_dirty_cancels();

-- Name: cancels cancels_dirty_truncated; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER cancels_dirty_truncated AFTER TRUNCATE ON public.cancels FOR EACH STATEMENT EXECUTE FUNCTION public.audit_dirty_everything();

-- Name: captures captures_dirty; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER captures_dirty AFTER INSERT OR DELETE ON public.captures FOR EACH ROW EXECUTE FUNCTION public.audit_dirty_captures();

-- Name: captures captures_dirty_changed; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER captures_dirty_changed AFTER UPDATE ON public.captures FOR EACH ROW WHEN (((((((old.payment_key IS DISTINCT FROM new.payment_key) OR (old.transaction_key IS DISTINCT FROM new.transaction_key)) OR (old.currency IS DISTINCT FROM new.currency)) OR (old.amount IS DISTINCT FROM new.amount)) OR (old.captured_at IS DISTINCT FROM new.captured_at)) OR (old.reversed_at IS DISTINCT FROM new.reversed_at))) EXECUTE FUNCTION public.audit_dirty_captures();

-- Name: captures captures_dirty_order; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER captures_dirty_order AFTER INSERT ON public.captures FOR EACH ROW EXECUTE FUNCTION public.audit_dirty_order();

-- Name: captures captures_dirty_order_changed; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER captures_dirty_order_changed AFTER UPDATE ON public.captures FOR EACH ROW WHEN ((old.payment_key <> new.payment_key)) EXECUTE FUNCTION public.audit_dirty_order();

-- Name: captures captures_dirty_truncated; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER captures_dirty_truncated AFTER TRUNCATE ON public.captures FOR EACH STATEMENT EXECUTE FUNCTION public.audit_dirty_everything();

-- Name: day_rows day_rows_append_only; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER day_rows_append_only BEFORE DELETE OR UPDATE ON public.day_rows FOR EACH ROW EXECUTE FUNCTION public.day_rows_are_append_only();

-- Name: day_rows day_rows_no_truncate; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER day_rows_no_truncate BEFORE TRUNCATE ON public.day_rows FOR EACH STATEMENT EXECUTE FUNCTION public.day_rows_are_append_only();

-- Name: day_signoffs day_signoffs_append_only; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER day_signoffs_append_only BEFORE DELETE OR UPDATE ON public.day_signoffs FOR EACH ROW EXECUTE FUNCTION public.signoff_is_append_only();

-- Name: day_signoffs day_signoffs_no_truncate; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER day_signoffs_no_truncate BEFORE TRUNCATE ON public.day_signoffs FOR EACH STATEMENT EXECUTE FUNCTION public.signoff_is_append_only();

-- Name: deeds deeds_only_added; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER deeds_only_added BEFORE DELETE OR UPDATE OR TRUNCATE ON public.deeds FOR EACH STATEMENT EXECUTE FUNCTION public.deeds_are_only_added();

-- Name: journal_balances journal_balances_append_only; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER journal_balances_append_only BEFORE DELETE OR UPDATE ON public.journal_balances FOR EACH ROW EXECUTE FUNCTION public.journal_is_append_only();

-- Name: journal_balances journal_balances_no_truncate; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER journal_balances_no_truncate BEFORE TRUNCATE ON public.journal_balances FOR EACH STATEMENT EXECUTE FUNCTION public.journal_is_append_only();

-- Name: journal_entries journal_entries_append_only; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER journal_entries_append_only BEFORE DELETE OR UPDATE ON public.journal_entries FOR EACH ROW EXECUTE FUNCTION public.journal_is_append_only();

-- Name: journal_entries journal_entries_balance; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER journal_entries_balance AFTER INSERT ON public.journal_entries REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION public.journal_entries_balance();

-- Name: journal_entries journal_entries_no_truncate; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER journal_entries_no_truncate BEFORE TRUNCATE ON public.journal_entries FOR EACH STATEMENT EXECUTE FUNCTION public.journal_is_append_only();

-- Name: journal_heads journal_heads_append_only; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER journal_heads_append_only BEFORE DELETE OR UPDATE ON public.journal_heads FOR EACH ROW EXECUTE FUNCTION public.journal_is_append_only();

-- Name: journal_heads journal_heads_no_truncate; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER journal_heads_no_truncate BEFORE TRUNCATE ON public.journal_heads FOR EACH STATEMENT EXECUTE FUNCTION public.journal_is_append_only();

-- Name: journal_marks journal_marks_append_only; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER journal_marks_append_only BEFORE DELETE OR UPDATE ON public.journal_marks FOR EACH ROW EXECUTE FUNCTION public.journal_is_append_only();

-- Name: journal_marks journal_marks_no_truncate; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER journal_marks_no_truncate BEFORE TRUNCATE ON public.journal_marks FOR EACH STATEMENT EXECUTE FUNCTION public.journal_is_append_only();

-- Name: journal_sections journal_sections_append_only; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER journal_sections_append_only BEFORE DELETE OR UPDATE ON public.journal_sections FOR EACH ROW EXECUTE FUNCTION public.journal_is_append_only();

-- Name: journal_sections journal_sections_no_truncate; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER journal_sections_no_truncate BEFORE TRUNCATE ON public.journal_sections FOR EACH STATEMENT EXECUTE FUNCTION public.journal_is_append_only();

-- Name: journal_transactions journal_transactions_append_only; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER journal_transactions_append_only BEFORE DELETE OR UPDATE ON public.journal_transactions FOR EACH ROW EXECUTE FUNCTION public.journal_is_append_only();

-- Name: journal_transactions journal_transactions_have_entries; Type: TRIGGER; Schema: public; Owner: -

CREATE CONSTRAINT TRIGGER journal_transactions_have_entries AFTER INSERT ON public.journal_transactions DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.journal_transaction_has_entries();

-- Name: journal_transactions journal_transactions_no_truncate; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER journal_transactions_no_truncate BEFORE TRUNCATE ON public.journal_transactions FOR EACH STATEMENT EXECUTE FUNCTION public.journal_is_append_only();

-- Name: mirror mirror_dirty_changed; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mirror_dirty_changed AFTER UPDATE ON public.mirror FOR EACH ROW WHEN ((((((((((old.transaction_key IS DISTINCT FROM new.transaction_key) OR (old.payment_key IS DISTINCT FROM new.payment_key)) OR (old.order_id IS DISTINCT FROM new.order_id)) OR (old.kind IS DISTINCT FROM new.kind)) OR (old.currency IS DISTINCT FROM new.currency)) OR (old.amount IS DISTINCT FROM new.amount)) OR (old.at IS DISTINCT FROM new.at)) OR (old.is_foreign IS DISTINCT FROM new.is_foreign)) OR (old.missing_since IS DISTINCT FROM new.missing_since))) EXECUTE FUNCTION public.audit_dirty_mirror();

-- Name: mirror mirror_dirty_fallen; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mirror_dirty_fallen AFTER INSERT ON public.mirror FOR EACH ROW WHEN ((new.kind = 'none'::text)) EXECUTE FUNCTION public.audit_dirty_fallen();

-- Name: mirror mirror_dirty_gone; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mirror_dirty_gone AFTER DELETE ON public.mirror FOR EACH ROW EXECUTE FUNCTION public.audit_dirty_mirror();

-- Name: mirror mirror_dirty_new; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mirror_dirty_new AFTER INSERT ON public.mirror FOR EACH ROW WHEN (((new.kind <> 'none'::text) OR new.is_foreign)) EXECUTE FUNCTION public.audit_dirty_mirror();

-- Name: mirror mirror_dirty_order; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mirror_dirty_order AFTER INSERT ON public.mirror FOR EACH ROW WHEN ((new.kind = 'capture'::text)) EXECUTE FUNCTION public.audit_dirty_order();

-- Name: mirror mirror_dirty_order_changed; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mirror_dirty_order_changed AFTER UPDATE ON public.mirror FOR EACH ROW WHEN ((((old.payment_key IS DISTINCT FROM new.payment_key) OR (old.order_id IS DISTINCT FROM new.order_id)) OR (old.kind IS DISTINCT FROM new.kind))) EXECUTE FUNCTION public.audit_dirty_order();

-- Name: mirror mirror_dirty_truncated; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mirror_dirty_truncated AFTER TRUNCATE ON public.mirror FOR EACH STATEMENT EXECUTE FUNCTION public.audit_dirty_everything();

-- Name: mismatch_trail mismatch_trail_append_only; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mismatch_trail_append_only BEFORE DELETE OR UPDATE ON public.mismatch_trail FOR EACH ROW EXECUTE FUNCTION public.mismatch_trail_is_append_only();

-- Name: mismatch_trail mismatch_trail_no_truncate; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mismatch_trail_no_truncate BEFORE TRUNCATE ON public.mismatch_trail FOR EACH STATEMENT EXECUTE FUNCTION public.mismatch_trail_is_append_only();

-- Name: mismatches mismatches_changed; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mismatches_changed BEFORE UPDATE ON public.mismatches FOR EACH ROW EXECUTE FUNCTION public.mismatch_changed();

-- Name: mismatches mismatches_contradicted; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mismatches_contradicted AFTER INSERT ON public.mismatches FOR EACH ROW WHEN (((new.status <> 'resolved'::text) AND (new.transaction_key IS NOT NULL) AND (new.kind = ANY (ARRAY['history_changed'::text, 'quarantined'::text, 'unrecognized_status'::text, 'journal_differs'::text])))) EXECUTE FUNCTION public.audit_dirty_contradicted();

-- Name: mismatches mismatches_contradicted_changed; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mismatches_contradicted_changed AFTER UPDATE ON public.mismatches FOR EACH ROW WHEN (((new.transaction_key IS NOT NULL) AND (new.kind = ANY (ARRAY['history_changed'::text, 'quarantined'::text, 'unrecognized_status'::text, 'journal_differs'::text])) AND ((((old.status = 'resolved'::text) IS DISTINCT FROM (new.status = 'resolved'::text)) OR (old.currency IS DISTINCT FROM new.currency)) OR (old.amount IS DISTINCT FROM new.amount)))) EXECUTE FUNCTION public.audit_dirty_contradicted();

-- Name: mismatches mismatches_dirty_changed; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mismatches_dirty_changed AFTER UPDATE ON public.mismatches FOR EACH ROW WHEN ((((old.resolved_as = 'accepted'::text) OR (new.resolved_as = 'accepted'::text)) AND (((((((old.resolved_as IS DISTINCT FROM new.resolved_as) OR (old.kind IS DISTINCT FROM new.kind)) OR (old.payment_key IS DISTINCT FROM new.payment_key)) OR (old.transaction_key IS DISTINCT FROM new.transaction_key)) OR (old.currency IS DISTINCT FROM new.currency)) OR (old.amount IS DISTINCT FROM new.amount)) OR (old.detail IS DISTINCT FROM new.detail)))) EXECUTE FUNCTION public.audit_dirty_mismatches();

-- Name: mismatches mismatches_dirty_gone; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mismatches_dirty_gone AFTER DELETE ON public.mismatches FOR EACH ROW WHEN ((old.resolved_as = 'accepted'::text)) EXECUTE FUNCTION public.audit_dirty_mismatches();

-- Name: mismatches mismatches_dirty_new; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mismatches_dirty_new AFTER INSERT ON public.mismatches FOR EACH ROW WHEN ((new.resolved_as = 'accepted'::text)) EXECUTE FUNCTION public.audit_dirty_mismatches();

-- Name: mismatches mismatches_dirty_truncated; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mismatches_dirty_truncated AFTER TRUNCATE ON public.mismatches FOR EACH STATEMENT EXECUTE FUNCTION public.audit_dirty_everything();

-- Name: mismatches mismatches_opened; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER mismatches_opened AFTER INSERT ON public.mismatches FOR EACH ROW EXECUTE FUNCTION public.mismatch_opened();

-- Name: payments payments_dirty_changed; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER payments_dirty_changed AFTER UPDATE ON public.payments FOR EACH ROW WHEN ((old.virtual_account <> new.virtual_account)) EXECUTE FUNCTION public.audit_dirty_payments();

-- Name: payments payments_dirty_new; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER payments_dirty_new AFTER INSERT ON public.payments FOR EACH ROW WHEN (new.virtual_account) EXECUTE FUNCTION public.audit_dirty_payments();

-- Name: payments payments_dirty_order; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER payments_dirty_order AFTER UPDATE ON public.payments FOR EACH ROW WHEN ((old.order_id <> new.order_id)) EXECUTE FUNCTION public.audit_dirty_order();

-- Name: work work_dirty_changed; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER work_dirty_changed AFTER UPDATE ON public.work FOR EACH ROW WHEN ((((((((((((old.kind IS DISTINCT FROM new.kind) OR (old.payment_key IS DISTINCT FROM new.payment_key)) OR (old.order_id IS DISTINCT FROM new.order_id)) OR (old.transaction_key IS DISTINCT FROM new.transaction_key)) OR (old.currency IS DISTINCT FROM new.currency)) OR (old.amount IS DISTINCT FROM new.amount)) OR (old.opened_at IS DISTINCT FROM new.opened_at)) OR (old.deadline IS DISTINCT FROM new.deadline)) OR (old.notice_attempt IS DISTINCT FROM new.notice_attempt)) OR (old.notice_next_at IS DISTINCT FROM new.notice_next_at)) OR ((old.closed_at IS NULL) IS DISTINCT FROM (new.closed_at IS NULL)))) EXECUTE FUNCTION public.audit_dirty_work();

-- Name: work work_dirty_gone; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER work_dirty_gone AFTER DELETE ON public.work FOR EACH ROW WHEN ((old.closed_at IS NULL)) EXECUTE FUNCTION public.audit_dirty_work();

-- Name: work work_dirty_new; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER work_dirty_new AFTER INSERT ON public.work FOR EACH ROW WHEN (((new.closed_at IS NULL) AND ((new.transaction_key IS NOT NULL) OR (new.kind = 'confirm_unknown'::text)))) EXECUTE FUNCTION public.audit_dirty_work();

-- Name: work work_dirty_truncated; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER work_dirty_truncated AFTER TRUNCATE ON public.work FOR EACH STATEMENT EXECUTE FUNCTION public.audit_dirty_everything();

-- Name: acceptances acceptances_order_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.acceptances
    ADD CONSTRAINT acceptances_order_id_fkey FOREIGN KEY (order_id) REFERENCES public.orders(order_id);

-- Name: cancel_requests cancel_requests_payment_key_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.cancel_requests
    ADD CONSTRAINT cancel_requests_payment_key_fkey FOREIGN KEY (payment_key) REFERENCES public.payments(payment_key);

-- Name: cancels cancels_order_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.cancels
    ADD CONSTRAINT cancels_order_id_fkey FOREIGN KEY (order_id) REFERENCES public.orders(order_id);

-- Name: cancels cancels_payment_key_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.cancels
    ADD CONSTRAINT cancels_payment_key_fkey FOREIGN KEY (payment_key) REFERENCES public.payments(payment_key);

-- Name: captures captures_payment_key_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.captures
    ADD CONSTRAINT captures_payment_key_fkey FOREIGN KEY (payment_key) REFERENCES public.payments(payment_key);

-- Name: day_signoffs day_signoffs_run_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.day_signoffs
    ADD CONSTRAINT day_signoffs_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.audit_runs(run_id);

-- Name: import_rows import_rows_import_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.import_rows
    ADD CONSTRAINT import_rows_import_id_fkey FOREIGN KEY (import_id) REFERENCES public.imports(import_id);

-- Name: journal_balances journal_balances_day_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.journal_balances
    ADD CONSTRAINT journal_balances_day_fkey FOREIGN KEY (day) REFERENCES public.journal_sections(day);

-- Name: journal_entries journal_entries_transaction_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.journal_entries
    ADD CONSTRAINT journal_entries_transaction_id_fkey FOREIGN KEY (transaction_id) REFERENCES public.journal_transactions(transaction_id);

-- Name: journal_heads journal_heads_day_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.journal_heads
    ADD CONSTRAINT journal_heads_day_fkey FOREIGN KEY (day) REFERENCES public.journal_sections(day);

-- Name: journal_marks journal_marks_sequence_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.journal_marks
    ADD CONSTRAINT journal_marks_sequence_fkey FOREIGN KEY (sequence) REFERENCES public.journal_heads(sequence) DEFERRABLE INITIALLY DEFERRED;

-- Name: mismatch_trail mismatch_trail_mismatch_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.mismatch_trail
    ADD CONSTRAINT mismatch_trail_mismatch_id_fkey FOREIGN KEY (mismatch_id) REFERENCES public.mismatches(mismatch_id);

-- Name: mismatches mismatches_incident_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.mismatches
    ADD CONSTRAINT mismatches_incident_id_fkey FOREIGN KEY (incident_id) REFERENCES public.incidents(incident_id);

-- Name: payments payments_order_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.payments
    ADD CONSTRAINT payments_order_id_fkey FOREIGN KEY (order_id) REFERENCES public.orders(order_id);

-- Name: work work_request_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.work
    ADD CONSTRAINT work_request_id_fkey FOREIGN KEY (request_id) REFERENCES public.cancel_requests(request_id);
