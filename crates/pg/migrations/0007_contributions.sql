-- What a person did with a change: `started`, `completed` or `failed` a node, wrote a `log` entry, recorded a `problem`, or
-- saved a `fact`. Null for other changes, and for those of a server that did not record it. `subject` is the node or the
-- fact; null if it is the workspace itself.

ALTER TABLE change ADD COLUMN IF NOT EXISTS what text;
ALTER TABLE change ADD COLUMN IF NOT EXISTS subject text;
CREATE INDEX IF NOT EXISTS change_contributions ON change (project, at, stream, seq) WHERE what IS NOT NULL;
