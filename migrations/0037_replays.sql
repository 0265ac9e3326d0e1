-- +goose Up

-- People may now look at what is kept of a notice's body, and take a delivery up again: first to see what that would change,
-- then for a reason. Each stands in the trail. Safe on a live table: every row has one of the older actions.

ALTER TABLE deeds DROP CONSTRAINT deeds_action_known;
ALTER TABLE deeds ADD CONSTRAINT deeds_action_known CHECK (action IN
    ('account_made', 'roles_set', 'password_given', 'password_chosen', 'account_disabled', 'account_enabled',
     'signed_in', 'sign_in_refused', 'signed_out', 'report_taken', 'gateway_asked', 'key_made', 'key_rotated', 'key_revoked',
     'notice_seen', 'delivery_rehearsed', 'delivery_replayed'));
COMMENT ON COLUMN deeds.subject IS 'The account, key, day, order, mismatch or delivery that it was done with.';
