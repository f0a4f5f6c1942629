//! Arguments of `tanmi memory`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::examples;

#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    /// Save a fact
    #[command(after_help = examples::SAVE_FACT)]
    SaveFact(SaveFactArgs),
    /// Save the summary of a session
    SaveSummary {
        /// Topic of the session, in a few words
        #[arg(long, allow_hyphen_values = true)]
        topic: String,
        /// What the session did (`-` reads stdin)
        #[arg(long, allow_hyphen_values = true, value_name = "TEXT")]
        summary: String,
        /// Decision that was made; repeatable
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        decisions: Vec<String>,
        /// Work that is left to do; repeatable
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        todos: Vec<String>,
        /// Session id [default: detected automatically inside an agent's shell]
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Search memories by words, in Chinese and English
    #[command(after_help = examples::MEMORY_SEARCH)]
    Search {
        /// Words to search for; put `--` before words that begin with a dash
        #[arg(required = true)]
        query: Vec<String>,
        #[command(flatten)]
        filter: MemoryFilterArgs,
        /// Maximum number of memories; 0 shows all
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = super::limit::parse)]
        limit: usize,
    },
    /// List memories, newest first
    List {
        #[command(flatten)]
        filter: MemoryFilterArgs,
        /// Maximum number of memories; 0 shows all
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = super::limit::parse)]
        limit: usize,
        /// Number of memories to skip
        #[arg(long, value_name = "N", default_value_t = 0)]
        skip: usize,
    },
    /// List facts whose files changed or are gone since they were saved
    Stale {
        /// Maximum number of facts; 0 shows all
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = super::limit::parse)]
        limit: usize,
    },
    /// Show a memory
    Show {
        /// Memory id
        id: String,
    },
    /// Edit a fact
    Edit {
        /// Fact id
        id: String,
        /// New text (`-` reads stdin)
        #[arg(allow_hyphen_values = true)]
        text: String,
    },
    /// Forget memories: hide them until `restore`
    Forget {
        /// Memory ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Restore forgotten memories
    Restore {
        /// Memory ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Move facts of the project to your own memory, which holds in all projects
    Promote {
        /// Fact ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Import memories from a file with one JSON object per line
    #[command(after_help = examples::MEMORY_IMPORT)]
    Import {
        /// File to import (`-` reads stdin)
        file: PathBuf,
    },
    /// Export memories as JSON lines that `import` accepts
    Export {
        /// Include forgotten and superseded memories
        #[arg(long)]
        all: bool,
    },
    /// Make past conversations searchable
    Ingest {
        /// Transcript files or folders [default: Claude Code's transcripts of this project]
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Manage the local embedding model, which adds search by meaning
    #[command(subcommand)]
    Model(ModelCommand),
    /// Manage dictionaries for search in two languages
    #[command(subcommand)]
    Lexicon(LexiconCommand),
    /// Update the search index now (searches also do this)
    Sync,
    /// Count memories by type
    Stats,
}

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// Add a static embedding model in model2vec format
    Add {
        /// Folder with tokenizer.json, model.safetensors and config.json
        dir: PathBuf,
    },
    /// Remove the model and search by words only
    Remove,
    /// Show the model in use
    Show,
}

#[derive(Debug, Subcommand)]
pub enum LexiconCommand {
    /// Add a Chinese-English dictionary, or replace the one with the same file name
    #[command(after_help = examples::LEXICON_ADD)]
    Add {
        /// File in CC-CEDICT or ECDICT (CSV) format
        file: PathBuf,
    },
    /// List the dictionaries
    List,
    /// Remove a dictionary
    Remove {
        /// File name of the dictionary, as `list` shows it
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct MemoryFilterArgs {
    /// Only this type: W, B or O (facts), S (summaries) or T (turns of conversations)
    #[arg(long = "type", value_name = "TYPE")]
    pub memory_type: Option<String>,
    /// From this day: YYYY-MM-DD, or days ago such as 7d
    #[arg(long, value_name = "DAY")]
    pub since: Option<String>,
    /// Through this day (inclusive): YYYY-MM-DD, or days ago such as 7d
    #[arg(long, value_name = "DAY")]
    pub until: Option<String>,
    /// Only memories of this session
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Only memories of this scope: project or user
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<String>,
    /// Include forgotten and superseded memories
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct SaveFactArgs {
    /// Text of the fact [default: read stdin, as for `-`]
    #[arg(allow_hyphen_values = true)]
    pub text: Option<String>,
    /// Read the text from this file
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    pub file: Option<PathBuf>,
    /// Type of the fact: W, B or O
    #[arg(long = "type", value_name = "TYPE", default_value = "W")]
    pub memory_type: String,
    /// Entities that the fact is about, separated by commas
    #[arg(long, value_name = "A,B")]
    pub entities: Vec<String>,
    /// Confidence from 0 to 1 [default for type O: 0.8]
    #[arg(long, value_name = "NUMBER")]
    pub confidence: Option<f64>,
    /// Session id [default: detected automatically inside an agent's shell]
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Id of a fact that this one supersedes; repeatable
    #[arg(long, value_name = "ID")]
    pub supersedes: Vec<String>,
    /// File of the project that the fact is about; repeatable
    #[arg(long = "path", value_name = "FILE")]
    pub paths: Vec<String>,
    /// Where the fact holds: project, or user for all projects
    #[arg(long, value_name = "SCOPE", default_value = "project")]
    pub scope: String,
}
