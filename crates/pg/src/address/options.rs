//! The options of an address that the driver does not know.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::Locality;
use crate::tls::{Roots, TlsMode};

/// The options that this crate handles itself.
#[derive(Debug, Default)]
pub(super) struct Options {
    sslmode: Option<String>,
    sslrootcert: Option<String>,
    pub passfile: Option<String>,
}

impl Options {
    /// Takes an option. Returns `false` if it is one of the driver.
    fn take(&mut self, key: &str, value: &str) -> bool {
        let option = match key {
            "sslmode" => &mut self.sslmode,
            "sslrootcert" => &mut self.sslrootcert,
            "passfile" => &mut self.passfile,
            _ => return false,
        };
        *option = Some(value.to_owned()).filter(|value| !value.is_empty());
        true
    }

    /// Returns how TLS is used, with the defaults that the module comment of the address describes.
    pub fn tls(&self, locality: Locality) -> Result<(TlsMode, Roots), String> {
        let words = TlsMode::WORDS.join(", ");
        let given = match self.sslmode.as_deref() {
            Some(word) => Some(TlsMode::from_word(word).ok_or_else(|| format!("sslmode is one of {words}"))?),
            None => None,
        };
        let roots = match self.sslrootcert.as_deref() {
            None => Roots::None,
            Some("system") => Roots::System,
            Some(path) => Roots::File(PathBuf::from(path)),
        };
        if roots == Roots::System && given.is_some_and(|mode| mode != TlsMode::VerifyFull) {
            return Err(String::from("sslrootcert=system needs sslmode=verify-full"));
        }
        let mode = match (given, &roots, locality) {
            (_, _, Locality::Socket) => return Ok((TlsMode::Disable, Roots::None)),
            (None, Roots::None, Locality::Loopback) => TlsMode::Prefer,
            (None, Roots::None, Locality::Remote) => TlsMode::Require,
            (None, ..) => TlsMode::VerifyFull,
            // As in `psql`: with an authority to check, the certificate is checked.
            (Some(TlsMode::Require), Roots::File(_), _) => TlsMode::VerifyCa,
            (Some(mode), ..) => mode,
        };
        let is_checked = matches!(mode, TlsMode::VerifyCa | TlsMode::VerifyFull);
        Ok((mode, if is_checked && roots == Roots::None { Roots::System } else { roots }))
    }
}

/// Returns an address without the options of this crate, and these. Errors do not repeat values.
pub(super) fn split(text: &str) -> Result<(String, Options), String> {
    let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
    if is_url { split_url(text) } else { split_pairs(text) }
}

fn split_url(text: &str) -> Result<(String, Options), String> {
    let mut options = Options::default();
    let Some((base, query)) = text.split_once('?') else { return Ok((text.to_owned(), options)) };
    let mut rest = Vec::new();
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8().map_err(|_| format!("{key} is not UTF-8"))?;
        if !options.take(key, &value) {
            rest.push(pair);
        }
    }
    let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    Ok((format!("{base}{query}"), options))
}

fn split_pairs(text: &str) -> Result<(String, Options), String> {
    let mut options = Options::default();
    let mut rest = Vec::new();
    let mut left = text.trim_start();
    while !left.is_empty() {
        let (key, after) = left.split_once('=').ok_or_else(|| {
            let word = left.split_whitespace().next().unwrap_or_default();
            format!("expected = after {word}")
        })?;
        let key = key.trim_end();
        if key.contains(char::is_whitespace) {
            return Err(format!("expected = after {}", key.split_whitespace().next().unwrap_or_default()));
        }
        let (value, after) = read_value(after.trim_start()).ok_or("a quote is not closed")?;
        if !options.take(key, &value) {
            rest.push(format!("{key}='{}'", value.replace('\\', "\\\\").replace('\'', "\\'")));
        }
        left = after.trim_start();
    }
    Ok((rest.join(" "), options))
}

/// Returns a value, which may be in single quotes, and what follows it. A backslash stands before a character that is
/// taken literally. `None` if a quote is not closed.
fn read_value(text: &str) -> Option<(String, &str)> {
    let is_quoted = text.starts_with('\'');
    let text = text.strip_prefix('\'').unwrap_or(text);
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            '\'' if is_quoted => return Some((value, &text[at + 1..])),
            c if c.is_whitespace() && !is_quoted => return Some((value, &text[at..])),
            c => value.push(c),
        }
    }
    (!is_quoted).then_some((value, ""))
}
