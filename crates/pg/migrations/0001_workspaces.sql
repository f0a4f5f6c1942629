-- Teams, their projects, and the workspaces of a project.
--
-- A row of `workspace` or `node` holds a Markdown document, which is the truth. The other columns are derived from it, for
-- queries and for the checks below. Times are milliseconds since 1970.

CREATE TABLE team (
    id   text PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name <> '')
);

CREATE TABLE project (
    id   text PRIMARY KEY,
    team text NOT NULL REFERENCES team,
    name text NOT NULL CHECK (name <> ''),
    UNIQUE (team, name)
);

-- The order of changes: one stream for each workspace. A write locks the row of its stream and takes the next number.
CREATE TABLE stream (
    project text NOT NULL REFERENCES project,
    id      text NOT NULL,
    seq     bigint NOT NULL CHECK (seq >= 0),
    PRIMARY KEY (project, id)
);

CREATE TABLE workspace (
    project    text NOT NULL,
    id         text NOT NULL,
    doc        text NOT NULL,
    active_at  bigint NOT NULL,
    deleted_at bigint,
    PRIMARY KEY (project, id),
    FOREIGN KEY (project, id) REFERENCES stream
);

CREATE TABLE node (
    project           text NOT NULL,
    ws                text NOT NULL,
    -- Siblings at the same position are ordered by the bytes of their ids, independent of the language of the database.
    id                text COLLATE "C" NOT NULL,
    parent            text COLLATE "C",
    -- The kind that the parent must have: an execution node has no children.
    parent_kind       text GENERATED ALWAYS AS (CASE WHEN parent IS NULL THEN NULL ELSE 'planning' END) STORED,
    -- Nodes without a position come after their siblings.
    ord               bigint NOT NULL,
    title             text NOT NULL,
    kind              text NOT NULL,
    status            text NOT NULL,
    role              text,
    isolated          boolean NOT NULL,
    has_problem       boolean NOT NULL,
    created_at        bigint NOT NULL,
    updated_at        bigint NOT NULL,
    status_changed_at bigint NOT NULL,
    -- The nodes that must be completed first, separated by commas, in the order of the document.
    depends_on        text NOT NULL,
    holder            text,
    -- Counts the holders. A command of an earlier holder names an earlier number and is refused.
    fence             bigint NOT NULL DEFAULT 0,
    -- The change that wrote the row last.
    seq               bigint NOT NULL,
    doc               text NOT NULL,
    PRIMARY KEY (project, ws, id),
    UNIQUE (project, ws, id, kind),
    FOREIGN KEY (project, ws) REFERENCES workspace,
    FOREIGN KEY (project, ws, parent, parent_kind) REFERENCES node (project, ws, id, kind),
    CHECK ((id = 'root') = (parent IS NULL)),
    CHECK (
        (kind = 'planning' AND status IN ('pending', 'planning', 'monitoring', 'completed', 'cancelled'))
        OR (kind = 'execution'
            AND status IN ('pending', 'implementing', 'validating', 'completed', 'failed'))
    ),
    CHECK (holder IS NULL OR status NOT IN ('completed', 'failed', 'cancelled'))
);
CREATE INDEX node_children ON node (project, ws, parent, ord, created_at, id);
CREATE INDEX node_recent ON node (project, ws, parent, status, status_changed_at DESC);
CREATE INDEX node_started ON node (project, ws, status_changed_at DESC) WHERE status IN ('implementing', 'validating');
CREATE INDEX node_held ON node (project, ws, status_changed_at) WHERE holder IS NOT NULL;
CREATE INDEX node_problems ON node (project, ws, updated_at DESC) WHERE has_problem;

-- Which nodes must be completed before a node can start.
CREATE TABLE dependency (
    project text NOT NULL,
    ws      text NOT NULL,
    node    text COLLATE "C" NOT NULL,
    target  text COLLATE "C" NOT NULL,
    PRIMARY KEY (project, ws, node, target),
    FOREIGN KEY (project, ws) REFERENCES workspace
);

-- Deleted nodes, each with the number of the change that deleted it.
CREATE TABLE trash (
    project    text NOT NULL,
    ws         text NOT NULL,
    id         text COLLATE "C" NOT NULL,
    deletion   bigint NOT NULL,
    deleted_at bigint NOT NULL,
    doc        text NOT NULL,
    PRIMARY KEY (project, ws, id),
    FOREIGN KEY (project, ws) REFERENCES workspace
);

-- The number of children per status. The empty parent counts all nodes of the workspace except the root.
CREATE TABLE tally (
    project text NOT NULL,
    ws      text NOT NULL,
    parent  text COLLATE "C" NOT NULL,
    status  text NOT NULL,
    n       bigint NOT NULL CHECK (n >= 0),
    PRIMARY KEY (project, ws, parent, status),
    FOREIGN KEY (project, ws) REFERENCES workspace
);

-- Every change with the documents it wrote, for feeds. A document that is null was removed.
CREATE TABLE change (
    project text NOT NULL,
    stream  text NOT NULL,
    seq     bigint NOT NULL CHECK (seq > 0),
    at      bigint NOT NULL,
    names   text[] NOT NULL,
    docs    text[] NOT NULL,
    -- Who made the change, in which session and on which machine, where that is known.
    person  text,
    session text,
    machine text,
    PRIMARY KEY (project, stream, seq),
    FOREIGN KEY (project, stream) REFERENCES stream,
    CHECK (cardinality(names) > 0 AND cardinality(names) = cardinality(docs))
);

-- The role of the program sees the rows of one project at a time: the one that its transaction names.
ALTER TABLE stream ENABLE ROW LEVEL SECURITY;
ALTER TABLE workspace ENABLE ROW LEVEL SECURITY;
ALTER TABLE node ENABLE ROW LEVEL SECURITY;
ALTER TABLE dependency ENABLE ROW LEVEL SECURITY;
ALTER TABLE trash ENABLE ROW LEVEL SECURITY;
ALTER TABLE tally ENABLE ROW LEVEL SECURITY;
ALTER TABLE change ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_project ON stream USING (project = current_setting('tanmi.project', true));
CREATE POLICY one_project ON workspace USING (project = current_setting('tanmi.project', true));
CREATE POLICY one_project ON node USING (project = current_setting('tanmi.project', true));
CREATE POLICY one_project ON dependency USING (project = current_setting('tanmi.project', true));
CREATE POLICY one_project ON trash USING (project = current_setting('tanmi.project', true));
CREATE POLICY one_project ON tally USING (project = current_setting('tanmi.project', true));
CREATE POLICY one_project ON change USING (project = current_setting('tanmi.project', true));
