-- The administration of a team: names and limits of tokens, and who changed what.

ALTER TABLE token ADD COLUMN IF NOT EXISTS name text NOT NULL DEFAULT '';
-- The only project in which the token is valid. Null: every project of its person.
ALTER TABLE token ADD COLUMN IF NOT EXISTS project text REFERENCES project;
-- Written at most once a minute.
ALTER TABLE token ADD COLUMN IF NOT EXISTS last_used_at bigint;

-- Logins, and changes of people, roles, tokens and projects. A row without a person is of the command line of the
-- database, or of a login that failed. `detail` is JSON and contains no secret.
CREATE TABLE audit (
    id      text COLLATE "C" PRIMARY KEY,
    at      bigint NOT NULL,
    project text REFERENCES project,
    person  text REFERENCES person,
    ip      text,
    what    text NOT NULL CHECK (what <> ''),
    detail  text NOT NULL
);
CREATE INDEX audit_at ON audit (at DESC, id DESC);
ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_project ON audit FOR SELECT USING (project = current_setting('tanmi.project', true));
CREATE POLICY add ON audit FOR INSERT WITH CHECK (true);

-- The role of the program reads members and tokens to find out who calls. It changes those of one project.
ALTER TABLE member ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_all ON member FOR SELECT USING (true);
CREATE POLICY add_one_project ON member FOR INSERT WITH CHECK (project = current_setting('tanmi.project', true));
CREATE POLICY set_one_project ON member FOR UPDATE USING (project = current_setting('tanmi.project', true));
CREATE POLICY remove_one_project ON member FOR DELETE USING (project = current_setting('tanmi.project', true));
