-- owner: messaging

-- Texts of campaigns that are over are forgotten after the time that the setting names, the oldest first.
CREATE INDEX campaigns_texts ON campaigns (created_at) WHERE message <> '';
