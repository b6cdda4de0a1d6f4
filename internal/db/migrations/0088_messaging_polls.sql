-- owner: messaging
-- The open messages at a provider that pushes no reports, whose states are polled. The query repeats these conditions.
CREATE INDEX messages_polled ON messages (submitted_at) WHERE open > 0 AND substr(upstream_id, 1, 10) = 'hubtelsms/';
