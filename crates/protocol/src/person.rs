//! People without a session, as holders of nodes.

/// Begins the holder of a node that a person without a session started: the mark and the name. No session
/// begins with it.
pub const PERSON_MARK: char = '@';

/// Returns the name of the person, if a holder is a person without a session.
pub fn person_of_holder(holder: &str) -> Option<&str> {
    holder.strip_prefix(PERSON_MARK)
}
