-- Logins of browsers. A ticket is redeemed once for a cookie. Only the SHA-256 of each is stored. Both end with their token.

CREATE TABLE login (
    id         text PRIMARY KEY,
    token      text NOT NULL REFERENCES token ON DELETE CASCADE,
    kind       text NOT NULL CHECK (kind IN ('ticket', 'cookie')),
    hash       text NOT NULL CHECK (length(hash) = 64),
    expires_at bigint NOT NULL
);
CREATE INDEX login_expires_at ON login (expires_at);
GRANT SELECT, INSERT, DELETE ON login TO tanmi_app;
