//! Embedding vectors of the memories, for one model at a time.
//!
//! A vector has one byte per dimension. Its signs, one bit per dimension, are stored a second time in blocks of many
//! vectors: comparing them finds the vectors that are worth reading.

use rusqlite::{Connection, OptionalExtension, params};

use super::MemoryIndex;
use crate::Result;

/// Number of vectors in a block of signs.
const BLOCK: usize = 2048;

/// The vectors of one model.
pub struct Vectors<'a> {
    db: &'a Connection,
}

impl MemoryIndex {
    /// Returns the vectors of an embedding model. Deletes those of any other model.
    pub fn vectors_of(&self, model: &str) -> Result<Vectors<'_>> {
        let known: Option<String> =
            self.db.query_row("SELECT id FROM model", [], |row| row.get(0)).optional()?;
        if known.as_deref() != Some(model) {
            self.db.execute_batch("DELETE FROM vectors; DELETE FROM signs; DELETE FROM model;")?;
            self.db.execute("INSERT INTO model VALUES(?1)", [model])?;
        }
        Ok(Vectors { db: &self.db })
    }
}

impl Vectors<'_> {
    /// Returns the numbers and contents of memories that have no vector yet. Vectors are stored in the order of the
    /// numbers, and a new memory has a higher number than all others, so these are the memories after the last vector.
    pub fn missing(&self, limit: usize) -> Result<Vec<(i64, String)>> {
        let sql = "SELECT n, content FROM records WHERE n > (SELECT coalesce(max(n), 0) FROM vectors) ORDER BY n LIMIT ?1";
        let mut query = self.db.prepare_cached(sql)?;
        let rows = query.query_map([limit as i64], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    /// Stores vectors. They follow those that are stored already.
    pub fn put(&self, vectors: &[(i64, Vec<u8>)]) -> Result<()> {
        let mut query = self.db.prepare_cached("INSERT OR REPLACE INTO vectors VALUES(?1, ?2)")?;
        for (n, vector) in vectors {
            query.execute(params![n, vector])?;
        }
        self.put_signs(vectors)
    }

    fn put_signs(&self, vectors: &[(i64, Vec<u8>)]) -> Result<()> {
        let last = "SELECT block, numbers, bits FROM signs ORDER BY block DESC LIMIT 1";
        let last: Option<(i64, Vec<u8>, Vec<u8>)> =
            self.db.query_row(last, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?;
        let (mut block, mut numbers, mut bits) = last.unwrap_or_default();
        for (n, vector) in vectors {
            if numbers.len() >= BLOCK * size_of::<i64>() {
                self.put_block(block, &numbers, &bits)?;
                (block, numbers, bits) = (block + 1, Vec::new(), Vec::new());
            }
            numbers.extend(n.to_le_bytes());
            bits.extend(signs(vector));
        }
        self.put_block(block, &numbers, &bits)
    }

    fn put_block(&self, block: i64, numbers: &[u8], bits: &[u8]) -> Result<()> {
        let mut query = self.db.prepare_cached("INSERT OR REPLACE INTO signs VALUES(?1, ?2, ?3)")?;
        query.execute(params![block, numbers, bits])?;
        Ok(())
    }

    /// Returns the numbers of up to `count` vectors whose signs differ least from those of a vector. A number
    /// may belong to a removed memory.
    pub fn nearest_by_sign(&self, vector: &[u8], count: usize) -> Result<Vec<i64>> {
        let wanted = signs(vector);
        let mut found: Vec<(u32, i64)> = Vec::new();
        let mut query = self.db.prepare_cached("SELECT numbers, bits FROM signs")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let (numbers, bits) = (
                row.get_ref(0)?.as_blob().unwrap_or_default(),
                row.get_ref(1)?.as_blob().unwrap_or_default(),
            );
            let numbers = numbers.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes));
            let vectors = bits.chunks_exact(wanted.len().max(1));
            found.extend(vectors.zip(numbers).map(|(bits, n)| (distance(bits, &wanted), n)));
        }
        if found.len() > count {
            found.select_nth_unstable(count);
            found.truncate(count);
        }
        Ok(found.into_iter().map(|(_, n)| n).collect())
    }

    /// Calls `visit` with each of these vectors that exists, once.
    pub fn visit(&self, numbers: &[i64], mut visit: impl FnMut(i64, &[u8])) -> Result<()> {
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let mut query = self.db.prepare_cached("SELECT v FROM vectors WHERE n = ?1")?;
        for n in numbers {
            let mut rows = query.query([n])?;
            if let Some(row) = rows.next()? {
                visit(n, row.get_ref(0)?.as_blob().unwrap_or_default());
            }
        }
        Ok(())
    }
}

/// Returns the signs of a vector, one bit per dimension, filled up to whole words of 64 bits.
fn signs(vector: &[u8]) -> Vec<u8> {
    let words = vector.chunks(64).map(|chunk| {
        let bit = |(at, byte): (usize, &u8)| u64::from(*byte as i8 >= 0) << at;
        chunk.iter().enumerate().map(bit).fold(0, |word, bit| word | bit)
    });
    words.flat_map(u64::to_le_bytes).collect()
}

/// Returns the number of different signs.
fn distance(a: &[u8], b: &[u8]) -> u32 {
    let words = a.as_chunks().0.iter().zip(b.as_chunks().0);
    words.map(|(a, b)| (u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b)).count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryRow;

    fn insert(index: &MemoryIndex, file: &str, id: &str) {
        let row = MemoryRow { id: id.into(), file: file.into(), content: id.into(), ..MemoryRow::default() };
        index.insert(&row, &[String::from("x")]).unwrap();
    }

    fn embed(index: &MemoryIndex) -> usize {
        let vectors = index.vectors_of("m").unwrap();
        let missing = vectors.missing(100_000).unwrap();
        let vector = |n: i64| (0..70u8).map(|at| if (n >> (at % 13)) & 1 == 0 { 200 } else { 50 }).collect();
        vectors.put(&missing.iter().map(|(n, _)| (*n, vector(*n))).collect::<Vec<_>>()).unwrap();
        missing.len()
    }

    #[test]
    fn nearest_by_sign_finds_vector_across_blocks() {
        let index = MemoryIndex::in_memory().unwrap();
        for n in 0..BLOCK * 2 + 10 {
            insert(&index, "f", &n.to_string());
        }
        assert_eq!(embed(&index), BLOCK * 2 + 10);
        let vectors = index.vectors_of("m").unwrap();
        for n in [1, 77, BLOCK as i64 + 5, BLOCK as i64 * 2 + 10] {
            let mut own = Vec::new();
            vectors.visit(&[n, n], |_, vector| own.push(vector.to_vec())).unwrap();
            assert_eq!(own.len(), 1);
            assert_eq!(vectors.nearest_by_sign(&own[0], 1).unwrap(), [n]);
        }
        assert_eq!(vectors.nearest_by_sign(&[1; 70], 30).unwrap().len(), 30);
    }

    #[test]
    fn missing_after_removed_file_returns_only_new_memories() {
        let index = MemoryIndex::in_memory().unwrap();
        for (file, id) in [("a", "1"), ("b", "2"), ("c", "3")] {
            insert(&index, file, id);
        }
        assert_eq!(embed(&index), 3);
        assert_eq!(embed(&index), 0);
        index.drop_file("c").unwrap();
        insert(&index, "d", "4");
        assert_eq!(embed(&index), 1, "the number of the removed memory is used again");
        index.drop_file("a").unwrap();
        assert_eq!(embed(&index), 0);
        let vectors = index.vectors_of("m").unwrap();
        let mut seen = Vec::new();
        vectors.visit(&vectors.nearest_by_sign(&[1; 70], 9).unwrap(), |n, _| seen.push(n)).unwrap();
        assert_eq!(seen, [2, 3]);
    }
}
