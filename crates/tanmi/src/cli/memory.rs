//! What can be typed after `tanmi memory`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    /// Save a fact
    SaveFact(SaveFactArgs),
    /// Save the summary of a session
    SaveSummary {
        #[arg(long, allow_hyphen_values = true)]
        topic: String,
        /// `-` reads standard input
        #[arg(long, allow_hyphen_values = true)]
        summary: String,
        /// Repeatable
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        decisions: Vec<String>,
        /// Repeatable
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        todos: Vec<String>,
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Find memories by words, in Chinese and English
    Search {
        /// What to look for (after `--` if it begins with a dash)
        #[arg(required = true)]
        query: Vec<String>,
        #[command(flatten)]
        filter: MemoryFilterArgs,
        #[arg(long, default_value_t = 10)]
        limit: usize,
    },
    /// List memories, the newest first
    List {
        #[command(flatten)]
        filter: MemoryFilterArgs,
        #[arg(long, default_value_t = 20)]
        limit: usize,
        #[arg(long, default_value_t = 0)]
        skip: usize,
    },
    /// Show one memory
    Show { id: String },
    /// Put another text in the place of a fact's
    Edit {
        id: String,
        /// The new text (`-` reads standard input)
        #[arg(allow_hyphen_values = true)]
        text: String,
    },
    /// Hide memories; their lines stay, and `restore` brings them back
    Forget {
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Bring forgotten memories back
    Restore {
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Take JSON lines in: id, content, timestamp, session, speaker, type, entities, confidence
    Import {
        /// `-` reads standard input
        file: PathBuf,
    },
    /// Print every memory as a line that `import` takes
    Export {
        /// Also what was forgotten or replaced
        #[arg(long)]
        all: bool,
    },
    /// Take past conversations in, for search; without a path those that Claude Code keeps of this project
    Ingest { paths: Vec<PathBuf> },
    /// Use a local static embedding model (model2vec format) beside the words
    #[command(subcommand)]
    Model(ModelCommand),
    /// Bring the index up to date
    Sync,
    /// Count
    Stats,
}

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// Use the model in this folder (tokenizer.json, model.safetensors, config.json)
    Add { dir: PathBuf },
    /// Search by words alone again
    Remove,
    /// Show which model is in use
    Show,
}

#[derive(Debug, Args)]
pub struct MemoryFilterArgs {
    /// W, B, O, S (summaries) or T (turns of conversations)
    #[arg(long = "type")]
    pub memory_type: Option<String>,
    /// From this day on: YYYY-MM-DD, or 7d
    #[arg(long, value_name = "DAY")]
    pub since: Option<String>,
    /// Up to and with this day
    #[arg(long, value_name = "DAY")]
    pub until: Option<String>,
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Also what was forgotten or replaced
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct SaveFactArgs {
    /// What is to be remembered (`-` or nothing reads standard input)
    #[arg(allow_hyphen_values = true)]
    pub text: Option<String>,
    /// Read it from a file
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    pub file: Option<PathBuf>,
    /// W of the world, B what happened in the project, O what somebody prefers (needs a confidence)
    #[arg(long = "type", default_value = "W")]
    pub memory_type: String,
    /// What it is about, separated by commas
    #[arg(long, value_name = "A,B")]
    pub entities: Vec<String>,
    /// How sure it is, 0 to 1
    #[arg(long)]
    pub confidence: Option<f64>,
    /// Session id; known by itself inside an agent's shell
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Fact that no longer holds because of this one; repeatable
    #[arg(long, value_name = "ID")]
    pub supersedes: Vec<String>,
}
