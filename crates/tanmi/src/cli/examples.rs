//! Examples at the end of help pages.

pub const ROOT: &str = "\
Get started:
  tanmi install            Set up the agents on this machine
  tanmi demo               See what an agent receives, step by step
  tanmi status             Show the work of this project
  tanmi help <COMMAND>     Show the help of a command";

pub const WORKSPACE_INIT: &str = "\
Examples:
  tanmi workspace init --name Auth --goal 'Log in with JWT'
  tanmi workspace init --name Auth --goal 'Log in with JWT' \\
    --rule 'Write tests first' --doc 'docs/auth.md: design of the login'";

pub const NODE_CREATE: &str = "\
Examples:
  tanmi node create --type planning --title 'Token service'
  tanmi node create --parent <NODE> --type execution --title 'Sign tokens' \\
    --requirement 'Sign tokens with RS256'";

pub const NODE_MOVE: &str = "\
Examples:
  tanmi node move <NODE> --parent <NODE>
  tanmi node move 'Sign tokens' --before 'Verify tokens'";

pub const NODE_DEPEND: &str = "\
Examples:
  tanmi node depend <NODE> --on <NODE>
  tanmi node depend <NODE> --on <NODE> --remove";

pub const PLAN: &str = "\
Outline:
  - Design: agree on the format
  - Build (after: Design)
    - **Parser**: read the format
    - **Writer** (after: Parser): write the format
  - [x] Set up the project

Indentation makes children, `(after: Title)` dependencies, `[x]` marks what is done. \
Indented lines below an item belong to its requirement. The tasks.md of spec-kit is read too.

Examples:
  tanmi plan plan.md
  tanmi plan tasks.md --parent <NODE>
  tanmi plan --export
  tanmi plan --export <NODE>";

pub const NEXT: &str = "\
Examples:
  tanmi next
  tanmi next --limit 1 --json
  tanmi next --start";

pub const NODE_TRANSITION: &str = "\
Actions of a planning node:
  start, complete, cancel, reopen

Actions of an execution node:
  start, submit, complete, fail, retry, reopen

Examples:
  tanmi node transition <NODE> --action start
  tanmi node transition <NODE> --action complete --conclusion 'All tests pass'";

pub const DONE: &str = "\
Examples:
  tanmi done 'Sign tokens' --conclusion 'All tests pass'
  tanmi done u02rz9";

pub const LOG: &str = "\
Examples:
  tanmi log 'Found the cause: the clock is in UTC'
  tanmi log --node workspace 'Agreed on the plan'
  tanmi log --limit 10";

pub const PROBLEM: &str = "\
Examples:
  tanmi problem 'The test server is down' --next-step 'Ask for a restart'
  tanmi problem --clear";

pub const SESSION_BIND: &str = "\
Examples:
  tanmi session bind --workspace <WS>
  tanmi session bind --session <ID> --workspace <WS> --node <NODE>";

pub const SAVE_FACT: &str = "\
Types:
  W  State of the world, such as how the code works
  B  Project history: what happened or was decided
  O  Opinion or preference; its --confidence is 0.8 by default

Examples:
  tanmi memory save-fact 'The API listens on port 8080' --entities api,port
  tanmi memory save-fact 'Prefers small commits' --type O --confidence 0.9";

pub const MEMORY_SEARCH: &str = "\
Examples:
  tanmi memory search port
  tanmi memory search token expiry --type W --since 7d";

pub const MEMORY_IMPORT: &str = "\
Fields of a line:
  content     Text of the memory; required
  type        W, B or O for a fact [default: W], or turn for a transcript turn
  timestamp   Date or time, such as 2026-01-31 or 2026-01-31T09:00:00Z
  entities    List of strings
  confidence  Number from 0 to 1
  session     Session id
  speaker     Author of a turn
  id          Unique id; an id that is already stored is skipped

Examples:
  tanmi memory import notes.jsonl";

pub const LEXICON_ADD: &str = "\
Examples:
  tanmi memory lexicon add cedict_ts.u8
  tanmi memory lexicon add ecdict.csv";

pub const RULES_EXPLAIN: &str = "\
Examples:
  tanmi rules explain --prompt 'What is next in the workspace?'
  tanmi rules explain --event session_start --start resume --all
  tanmi rules explain --payload payload.json --platform cursor";

pub const LEDGER: &str = "\
Examples:
  tanmi ledger --limit 5 --text
  tanmi ledger --since 2026-01-01 --event session_start
  tanmi ledger --node 'Write the parser'";

pub const INSTALL: &str = "\
Examples:
  tanmi install --dry-run
  tanmi install
  tanmi install --platform claude-code --scope project --guide";

pub const CONFIG_SET: &str = "\
Examples:
  tanmi config set language zh
  tanmi config set reminders false --for-project";

pub const SERVE: &str = "\
Examples:
  tanmi serve
  tanmi serve --port 8080 --no-open
  tanmi serve --database postgres://tanmi@db/tanmi --listen 127.0.0.1:7777
  tanmi serve --listen 0.0.0.0:7777 --tls-cert cert.pem --tls-key key.pem";

pub const TEAM_SETUP: &str = "\
Examples:
  export TANMI_DATABASE_URL=postgres://tanmi:PASSWORD@localhost/tanmi
  tanmi team setup --team Acme --project-name shop --admin ada
  tanmi serve --listen 127.0.0.1:7777

What exists stays. An older schema is upgraded, as by tanmi team upgrade.";

pub const TEAM_TOKEN_CREATE: &str = "\
Examples:
  tanmi team token create --person bob --role member --name laptop
  tanmi team token create --project-name shop --person ci --role reader \\
    --expires 90d --this-project-only";

pub const TEAM_EXPORT: &str = "\
Examples:
  tanmi team export ./shop --project-name shop

Deleted workspaces and nodes are not exported.";

pub const TEAM_IMPORT: &str = "\
Examples:
  tanmi team project add shop
  tanmi team import ~/src/shop --project-name shop

What the project has already is skipped, so the command can be run again. A
workspace or a memory that the project has with other content is refused, and
nothing is imported. Opinions, transcripts, MEMORY.md and what is in the trash
stay on this machine.";

pub const TEAM_JOIN: &str = "\
Examples:
  tanmi team join https://team.example.org --project-name shop \\
    --token-file token.txt

Workspaces and shared memory of the project are kept on the server, with a copy
on this machine. Preferences, transcripts and sessions stay on this machine.";

pub const TEAM_LOGIN: &str = "\
Examples:
  tanmi team login --url https://tanmi.example.org:7777 --token-file ~/token
  pass tanmi | tanmi team login --url https://team.example.org --token-file -";

pub const HOOK: &str = "\
`tanmi install` writes this command into the configuration of each agent. A hook never fails: \
it exits with status 0 even if it cannot respond.";

pub const COMPLETIONS: &str = "\
Examples:
  tanmi completions bash > ~/.local/share/bash-completion/completions/tanmi
  tanmi completions zsh > ~/.zfunc/_tanmi
  tanmi completions fish > ~/.config/fish/completions/tanmi.fish";

pub const CONTEXT_PROVISION: &str = "\
Examples:
  tanmi context provision --user alice --dry-run
  tanmi context provision --all --extensions extensions";
