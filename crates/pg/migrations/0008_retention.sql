-- What is kept for a limited time. A change whose documents were removed keeps their names and what its author did. A reader
-- at an earlier position reads the workspace anew.

ALTER TABLE change DROP CONSTRAINT IF EXISTS change_check;
ALTER TABLE change DROP CONSTRAINT IF EXISTS change_documents;
ALTER TABLE change ADD CONSTRAINT change_documents
    CHECK (cardinality(names) > 0 AND cardinality(docs) IN (0, cardinality(names)));
CREATE INDEX IF NOT EXISTS change_with_documents ON change (project, at)
    WHERE cardinality(docs) > 0 AND stream <> 'memory';
CREATE INDEX IF NOT EXISTS request_project_at ON request (project, at);
DROP INDEX IF EXISTS request_at;
CREATE INDEX IF NOT EXISTS trash_deleted_at ON trash (project, deleted_at);
