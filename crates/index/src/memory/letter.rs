//! The types of memories. The index stores them as words.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};

/// What a memory is, by the letter that is shown for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryLetter {
    /// A fact about the world. Also a fact whose type is unknown.
    #[default]
    W,
    /// A fact of the project history.
    B,
    /// A fact that is an opinion or a preference.
    O,
    /// A summary.
    S,
    /// A turn.
    T,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    Fact,
    Summary,
    Turn,
}

impl MemoryLetter {
    const ALL: [MemoryLetter; 5] =
        [MemoryLetter::W, MemoryLetter::B, MemoryLetter::O, MemoryLetter::S, MemoryLetter::T];

    pub fn as_str(self) -> &'static str {
        match self {
            MemoryLetter::W => "W",
            MemoryLetter::B => "B",
            MemoryLetter::O => "O",
            MemoryLetter::S => "S",
            MemoryLetter::T => "T",
        }
    }

    pub fn kind(self) -> MemoryKind {
        match self {
            MemoryLetter::W | MemoryLetter::B | MemoryLetter::O => MemoryKind::Fact,
            MemoryLetter::S => MemoryKind::Summary,
            MemoryLetter::T => MemoryKind::Turn,
        }
    }
}

impl MemoryKind {
    pub fn as_str(self) -> &'static str {
        match self {
            MemoryKind::Fact => "fact",
            MemoryKind::Summary => "summary",
            MemoryKind::Turn => "turn",
        }
    }
}

/// An unknown letter is an error that makes the index count as lost, so that it is built again.
impl FromSql for MemoryLetter {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<MemoryLetter> {
        let word = value.as_str()?;
        MemoryLetter::ALL.into_iter().find(|letter| letter.as_str() == word).ok_or(FromSqlError::InvalidType)
    }
}
