-- Sessions of agents that work on the server itself are bound to a workspace there. The text is JSON.

ALTER TABLE session ADD COLUMN IF NOT EXISTS binding text;
