-- People, their tokens, their sessions, and the answers that a repeated request gets again.

CREATE TABLE person (
    id          text PRIMARY KEY,
    team        text NOT NULL REFERENCES team,
    name        text NOT NULL CHECK (name <> ''),
    disabled_at bigint,
    UNIQUE (team, name)
);

CREATE TABLE member (
    project text NOT NULL REFERENCES project,
    person  text NOT NULL REFERENCES person,
    role    text NOT NULL CHECK (role IN ('admin', 'member', 'reader')),
    PRIMARY KEY (project, person)
);

-- Only the SHA-256 of a token is stored. `role` limits the token to less than its person may do.
CREATE TABLE token (
    id         text PRIMARY KEY,
    person     text NOT NULL REFERENCES person,
    hash       text NOT NULL CHECK (length(hash) = 64),
    role       text NOT NULL CHECK (role IN ('admin', 'member', 'reader')),
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint
);
CREATE INDEX token_person ON token (person);

-- A session is alive until its lease ends. Each of its calls renews the lease.
CREATE TABLE session (
    project     text NOT NULL REFERENCES project,
    id          text NOT NULL,
    person      text NOT NULL REFERENCES person,
    machine     text NOT NULL,
    lease_until bigint NOT NULL,
    PRIMARY KEY (project, id)
);

-- The answer of each request, stored with the change that it made. `digest` is that of the request.
CREATE TABLE request (
    project text NOT NULL REFERENCES project,
    key     text NOT NULL CHECK (length(key) BETWEEN 8 AND 100),
    digest  text NOT NULL,
    answer  text NOT NULL,
    at      bigint NOT NULL,
    PRIMARY KEY (project, key)
);
CREATE INDEX request_at ON request (at);

ALTER TABLE session ENABLE ROW LEVEL SECURITY;
ALTER TABLE request ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_project ON session USING (project = current_setting('tanmi.project', true));
CREATE POLICY one_project ON request USING (project = current_setting('tanmi.project', true));
