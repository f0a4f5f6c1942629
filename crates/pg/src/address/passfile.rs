//! The passfile: lines of `host:port:database:user:password`, as `psql` reads them.

use std::path::Path;

use tanmi_base::fs;

use crate::error::DatabaseError;

/// The largest passfile that is read.
const MAX_SIZE: u64 = 1 << 20;

/// Returns the content of a passfile. `None` if it does not exist. Fails if other users can read it.
pub(super) fn read(path: &Path) -> Result<Option<String>, DatabaseError> {
    let failed = |reason: String| DatabaseError::Passfile { path: path.to_owned(), reason };
    #[cfg(unix)]
    if let Ok(meta) = std::fs::metadata(path) {
        use std::os::unix::fs::PermissionsExt;
        if meta.permissions().mode() & 0o077 != 0 {
            let path = path.display();
            return Err(failed(format!("other users can read it; run `chmod 600 {path}`")));
        }
    }
    let bytes = fs::read_limited(path, MAX_SIZE).map_err(|error| failed(error.to_string()))?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Returns the password of the first line that matches. `*` matches anything; a socket also matches `localhost`.
pub fn find_password(text: &str, host: &str, port: u16, database: &str, user: &str) -> Option<String> {
    let port = port.to_string();
    let is_socket = host.starts_with('/');
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let (fields, password) = split_line(line)?;
        let matches = |at: usize, value: &str| fields[at] == "*" || fields[at] == value;
        let is_host = matches(0, host) || (is_socket && fields[0] == "localhost");
        (is_host && matches(1, &port) && matches(2, database) && matches(3, user)).then_some(password)
    })
}

/// Returns the four fields before the password, and the password. A backslash stands before a `:` or `\` of a value.
fn split_line(line: &str) -> Option<([String; 4], String)> {
    let mut fields: Vec<String> = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let field = fields.last_mut()?;
        match c {
            '\\' => field.extend(chars.next()),
            ':' => fields.push(String::new()),
            c => field.push(c),
        }
    }
    // What follows an unescaped colon in a password is not part of it, as in `psql`.
    let [host, port, database, user, password] = <[String; 5]>::try_from(fields.get(..5)?.to_vec()).ok()?;
    Some(([host, port, database, user], password))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_that_of_the_first_matching_line() {
        let text = "# db:5432:app:ada:comment\nbroken line\ndb:5433:app:ada:other port\n\
                    db:*:app:ada:se\\:cr\\\\et\ndb:*:*:*:later\nlocalhost:5432:*:bob:socket\n";
        let find = |host: &str, port: u16, database: &str, user: &str| {
            find_password(text, host, port, database, user)
        };
        assert_eq!(find("db", 5432, "app", "ada").as_deref(), Some("se:cr\\et"));
        assert_eq!(find("db", 5433, "app", "ada").as_deref(), Some("other port"));
        assert_eq!(find("db", 1, "x", "y").as_deref(), Some("later"));
        assert_eq!(find("/run/postgresql", 5432, "app", "bob").as_deref(), Some("socket"));
        assert_eq!(find("elsewhere", 5432, "app", "ada"), None);
    }
}
