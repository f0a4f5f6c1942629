//! The changes of a workspace, read from the table of changes by their numbers.

use tanmi_workspace::error::Result;
use tanmi_workspace::model::WorkspaceId;
use tanmi_workspace::store::{ChangeFeed, FeedStart, Store, StoreEvent, Subscription};
use tokio_postgres::Row;

use crate::store::PgStore;

/// The number of changes that one call reads.
const PAGE: i64 = 4096;
const HEAD: &str = "SELECT seq FROM stream WHERE project = $1 AND id = $2";
/// The number of the last change comes with each row; without a change it comes alone.
const AFTER: &str = "SELECT s.seq AS head, c.seq, c.names FROM stream s
LEFT JOIN change c ON c.project = s.project AND c.stream = s.id AND c.seq > $3
WHERE s.project = $1 AND s.id = $2 ORDER BY c.seq LIMIT $4";

impl ChangeFeed for PgStore {
    fn ids(&self) -> Result<Vec<WorkspaceId>> {
        Ok(self.read_headers()?.into_iter().map(|(id, _)| id).collect())
    }

    fn subscribe(&self, id: &WorkspaceId, from: FeedStart) -> Box<dyn Subscription> {
        let seq = match from {
            FeedStart::Now => None,
            FeedStart::After(seq) => Some(i64::try_from(seq).unwrap_or(i64::MAX)),
        };
        let mut subscription = PgSubscription { store: self.clone(), id: id.clone(), seq };
        // If the database is away now, the subscription begins when it is back.
        subscription.seq = seq.or_else(|| subscription.head().ok().flatten());
        Box::new(subscription)
    }
}

struct PgSubscription {
    store: PgStore,
    id: WorkspaceId,
    /// The number of the last reported change. `None` if the subscription has not begun.
    seq: Option<i64>,
}

impl PgSubscription {
    /// Returns the number of the last change, if the workspace exists.
    fn head(&self) -> Result<Option<i64>> {
        let rows = self.store.query(HEAD, &[&self.id.as_str()])?;
        Ok(rows.first().map(|row| row.get("seq")))
    }
}

impl Subscription for PgSubscription {
    fn changes(&mut self) -> Result<Vec<StoreEvent>> {
        let Some(from) = self.seq else {
            self.seq = self.head()?;
            return Ok(Vec::new());
        };
        let rows = self.store.query(AFTER, &[&self.id.as_str(), &from, &PAGE])?;
        let Some(head) = rows.first().map(|row| row.get::<_, i64>("head")) else { return Ok(Vec::new()) };
        let events = events_after(from, head, &rows);
        self.seq = Some(match events.last() {
            Some(StoreEvent::Change { seq, .. } | StoreEvent::Gap { seq }) => seq.cast_signed(),
            _ => from,
        });
        Ok(events)
    }

    fn edits(&mut self) -> Result<Option<StoreEvent>> {
        Ok(None)
    }
}

/// Returns the events of the rows. A position that is not in the table, because it is too old or of another
/// database, is a gap.
fn events_after(from: i64, head: i64, rows: &[Row]) -> Vec<StoreEvent> {
    let change = |row: &Row| {
        let seq: i64 = row.get::<_, Option<i64>>("seq")?;
        Some(StoreEvent::Change { seq: seq.unsigned_abs(), nodes: row.get("names") })
    };
    let changes: Vec<StoreEvent> = rows.iter().filter_map(change).collect();
    let gap = match changes.first() {
        Some(StoreEvent::Change { seq, .. }) if seq.cast_signed() > from + 1 => Some(seq - 1),
        None if from != head => Some(head.unsigned_abs()),
        _ => None,
    };
    gap.map(|seq| StoreEvent::Gap { seq }).into_iter().chain(changes).collect()
}
