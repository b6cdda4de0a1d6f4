-- owner: approval

CREATE INDEX acts_waiting_of_maker ON acts (maker) WHERE state = 'waiting';
