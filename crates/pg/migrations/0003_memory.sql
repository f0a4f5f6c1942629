-- The memory of a project: the facts and summaries that its people share.
--
-- A row holds the line of a record as it stands in a memory file, which is the truth. The other columns are derived from
-- it and from the marks after it. The stream of the changes is named 'memory'; the documents of a change are lines.

CREATE TABLE memory (
    project      text NOT NULL REFERENCES project,
    id           text COLLATE "C" NOT NULL CHECK (id <> ''),
    -- The last change of the write that added it.
    seq          bigint NOT NULL CHECK (seq > 0),
    kind         text NOT NULL CHECK (kind IN ('fact', 'summary')),
    line         text NOT NULL CHECK (line <> '' AND strpos(line, E'\n') = 0),
    content_hash bigint NOT NULL,
    -- Forgotten, or superseded by the memory `replaced_by`, which is empty otherwise.
    hidden       boolean NOT NULL,
    replaced_by  text NOT NULL CHECK (hidden OR replaced_by = ''),
    PRIMARY KEY (project, id)
);
-- A fact is in force once.
CREATE UNIQUE INDEX memory_content ON memory (project, content_hash) WHERE kind = 'fact' AND NOT hidden;

ALTER TABLE memory ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_project ON memory USING (project = current_setting('tanmi.project', true));
