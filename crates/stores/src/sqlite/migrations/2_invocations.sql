-- The nodes that ran last, where steps before the checkpoint were not stored: JSON; NULL where the plan of the parent
-- tells.
ALTER TABLE checkpoint ADD COLUMN ran TEXT;

-- The client's id of the invocation that made the checkpoint.
ALTER TABLE checkpoint ADD COLUMN invocation BLOB;
