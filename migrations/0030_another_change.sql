-- +goose Up

-- A signed day that says something else than it did a moment ago is another change, also where as much money is at risk as
-- before: whoever acknowledged the one has not seen the other.
-- Safe on a live table: the function is replaced, and the index holds what was resolved.

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION mismatch_changed() RETURNS trigger LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd

CREATE INDEX mismatches_resolved ON mismatches (resolved_at) WHERE status = 'resolved';
