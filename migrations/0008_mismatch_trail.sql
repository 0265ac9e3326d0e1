-- +goose Up

-- The life of a mismatch: one row per contradiction for ever, every change of it in a trail that nothing can alter, a
-- second person above an amount, and one incident for a storm.
-- Safe on a live table: columns are added without a rewrite; the few rows of contradictions that were resolved and found
-- again are folded into their newest.

CREATE TABLE incidents (
    incident_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run         text NOT NULL CONSTRAINT incidents_run_named CHECK (run <> ''),
    opened_at   timestamptz NOT NULL,
    found       integer NOT NULL DEFAULT 0,
    unknown     integer NOT NULL DEFAULT 0,
    at_risk     jsonb NOT NULL DEFAULT '{}',
    status      text NOT NULL DEFAULT 'open' CONSTRAINT incidents_status_known CHECK (status IN ('open', 'resolved')),
    ended_at    timestamptz,
    CONSTRAINT incidents_end_is_whole CHECK ((status = 'resolved') = (ended_at IS NOT NULL))
);
COMMENT ON TABLE incidents IS 'More new mismatches in one run than a person can look at one by one: one cause, one alarm.';
COMMENT ON COLUMN incidents.run IS 'What found them, as in "audit recent 2026-11-30T12:00:00Z" or "list 41".';
COMMENT ON COLUMN incidents.found IS 'How many mismatches the run opened.';
COMMENT ON COLUMN incidents.unknown IS 'Of those, how many whose money at risk is not known.';
COMMENT ON COLUMN incidents.at_risk IS 'Money at risk when they were found, minor units by currency.';
CREATE UNIQUE INDEX incidents_one_per_run ON incidents (run);
CREATE INDEX incidents_open ON incidents (incident_id) WHERE status = 'open';
CREATE INDEX incidents_by_time ON incidents (opened_at);

DELETE FROM mismatches m
USING mismatches newer
WHERE newer.fingerprint = m.fingerprint AND newer.mismatch_id > m.mismatch_id;
DROP INDEX mismatches_one_open;
CREATE UNIQUE INDEX mismatches_one_per_fingerprint ON mismatches (fingerprint);

ALTER TABLE mismatches
    ADD COLUMN revision    integer NOT NULL DEFAULT 1,
    ADD COLUMN changed_at  timestamptz,
    ADD COLUMN changed_by  text NOT NULL DEFAULT 'system' CONSTRAINT mismatches_change_has_actor CHECK (changed_by <> ''),
    ADD COLUMN remark      text NOT NULL DEFAULT '',
    ADD COLUMN assignee    text,
    ADD COLUMN proposal    jsonb CONSTRAINT mismatches_proposal_is_whole CHECK (proposal IS NULL OR (
        status <> 'resolved' AND proposal ? 'by' AND proposal ? 'at' AND proposal ->> 'as' IN ('fixed', 'accepted'))),
    ADD COLUMN resolved_by text,
    ADD COLUMN opened_run  text NOT NULL DEFAULT '',
    ADD COLUMN incident_id bigint REFERENCES incidents (incident_id);
COMMENT ON COLUMN mismatches.fingerprint IS 'The same contradiction found again is the same row: it is seen again, or opened again in place.';
COMMENT ON COLUMN mismatches.revision IS 'Number of its last change, as in the trail.';
COMMENT ON COLUMN mismatches.changed_by IS 'Who made the last change: system, os:<user> or api:<key>.';
COMMENT ON COLUMN mismatches.remark IS 'What was said with the last change.';
COMMENT ON COLUMN mismatches.note IS 'What the person who resolved it said.';
COMMENT ON COLUMN mismatches.proposal IS 'How a first person wants it resolved, until a second one confirms or withdraws: as, by, at, note, and what it says of a cancel request of ours.';
COMMENT ON COLUMN mismatches.opened_run IS 'The run that opened it, or opened it again, last; empty when one answer did.';
COMMENT ON COLUMN mismatches.incident_id IS 'The storm that it came with.';
CREATE INDEX mismatches_of_run ON mismatches (opened_run) WHERE status <> 'resolved' AND opened_run <> '';
CREATE INDEX mismatches_of_incident ON mismatches (incident_id, mismatch_id) WHERE incident_id IS NOT NULL;
CREATE INDEX mismatches_open_of_incident ON mismatches (incident_id) WHERE incident_id IS NOT NULL AND status <> 'resolved';
CREATE INDEX mismatches_of_order ON mismatches (order_id) WHERE order_id IS NOT NULL;
CREATE INDEX mismatches_of_kind ON mismatches (kind, mismatch_id);
CREATE INDEX mismatches_not_resolved ON mismatches (mismatch_id) WHERE status <> 'resolved';
CREATE INDEX mismatches_of_assignee ON mismatches (assignee, mismatch_id) WHERE assignee IS NOT NULL;

CREATE TABLE second_person (
    only_row boolean PRIMARY KEY DEFAULT true CONSTRAINT second_person_is_one_row CHECK (only_row),
    above    bigint NOT NULL CONSTRAINT second_person_not_negative CHECK (above >= 0),
    set_at   timestamptz NOT NULL
);
COMMENT ON TABLE second_person IS 'Above how many won at risk a second person must confirm a resolution; one row. Set by the service at its start, so that no command can be told otherwise.';

-- Cancels that are still owed an answer, soonest last chance first.
CREATE INDEX work_pending ON work (deadline, work_id)
    WHERE closed_at IS NULL AND kind IN ('cancel_claimed', 'cancel_listed', 'cancel_in_progress', 'cancel_request');

CREATE TABLE mismatch_trail (
    mismatch_id bigint NOT NULL REFERENCES mismatches (mismatch_id),
    number      integer NOT NULL,
    at          timestamptz NOT NULL,
    actor       text NOT NULL CONSTRAINT mismatch_trail_has_actor CHECK (actor <> ''),
    action      text NOT NULL CONSTRAINT mismatch_trail_action_known CHECK (action IN
        ('opened', 'seen_changed', 'acknowledged', 'assigned', 'resolution_proposed', 'resolution_withdrawn', 'resolved',
         'reopened', 'noted', 'joined_incident')),
    changed     jsonb NOT NULL,
    note        text NOT NULL DEFAULT '',
    gateway     jsonb,
    books       jsonb,
    PRIMARY KEY (mismatch_id, number)
);
COMMENT ON TABLE mismatch_trail IS 'Every change of every mismatch, written by the database itself; rows are never changed or deleted.';
COMMENT ON COLUMN mismatch_trail.number IS 'Counts the changes of one mismatch without a gap.';
COMMENT ON COLUMN mismatch_trail.actor IS 'system, os:<user> or api:<key>; db:<role> for a change made by hand in the database.';
COMMENT ON COLUMN mismatch_trail.changed IS 'The fields that changed, as they are afterwards: all of them together are the row.';
COMMENT ON COLUMN mismatch_trail.gateway IS 'Evidence of the gateway''s side as it stood then; kept where somebody judged by it.';
COMMENT ON COLUMN mismatch_trail.books IS 'Evidence of our side as it stood then.';

-- +goose StatementBegin
CREATE FUNCTION mismatch_fields(m mismatches) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_object('status', m.status, 'currency', m.currency, 'amount', m.amount, 'detail', m.detail,
        'assignee', m.assignee, 'proposal', m.proposal, 'resolved_as', m.resolved_as, 'resolved_by', m.resolved_by,
        'note', m.note, 'incident_id', m.incident_id, 'opened_run', m.opened_run)
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION mismatch_opened() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mismatch_trail (mismatch_id, number, at, actor, action, changed, note, gateway, books)
    VALUES (NEW.mismatch_id, NEW.revision, COALESCE(NEW.changed_at, NEW.opened_at), NEW.changed_by, 'opened',
        mismatch_fields(NEW), NEW.remark, NEW.gateway, NEW.books);
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- A statement of ours counts the revision up and says who and when; one that does not was typed by somebody with the
-- database's password, and is put down as that.
-- +goose StatementBegin
CREATE FUNCTION mismatch_changed() RETURNS trigger LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION mismatch_trail_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the trail of mismatches is append-only: % on % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'mismatch_trail_append_only';
END $$;
-- +goose StatementEnd

INSERT INTO mismatch_trail (mismatch_id, number, at, actor, action, changed, gateway, books)
SELECT m.mismatch_id, m.revision, m.opened_at, m.changed_by, 'opened', mismatch_fields(m), m.gateway, m.books
FROM mismatches m;

CREATE TRIGGER mismatches_opened AFTER INSERT ON mismatches
    FOR EACH ROW EXECUTE FUNCTION mismatch_opened();
CREATE TRIGGER mismatches_changed BEFORE UPDATE ON mismatches
    FOR EACH ROW EXECUTE FUNCTION mismatch_changed();
CREATE TRIGGER mismatch_trail_append_only BEFORE UPDATE OR DELETE ON mismatch_trail
    FOR EACH ROW EXECUTE FUNCTION mismatch_trail_is_append_only();
CREATE TRIGGER mismatch_trail_no_truncate BEFORE TRUNCATE ON mismatch_trail
    FOR EACH STATEMENT EXECUTE FUNCTION mismatch_trail_is_append_only();
