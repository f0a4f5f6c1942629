//! The address of a team server.

/// Returns the address of a server without a slash at its end. `None` if it is not one, or if a token would cross the
/// network unencrypted.
pub fn server_address(text: &str) -> Option<String> {
    let server = text.trim().trim_end_matches('/');
    let (scheme, rest) = server.split_once("://")?;
    let host = rest.split('/').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '@' | '?' | '#' | '\\' | '%');
    if host.is_empty() || host.starts_with(':') || !rest.chars().all(is_plain) {
        return None;
    }
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let is_loopback =
        name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    (scheme == "https" || (scheme == "http" && is_loopback)).then(|| server.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_address_accepts_tls_and_loopback_only() {
        for good in [
            "https://team.example",
            "https://team.example:8443/tanmi",
            "http://127.0.0.1:7777",
            "http://localhost:1",
            "http://[::1]:7777",
        ] {
            assert_eq!(server_address(good).as_deref(), Some(good));
        }
        assert_eq!(server_address(" https://team.example/ ").as_deref(), Some("https://team.example"));
        for bad in [
            "",
            "team.example",
            "http://team.example",
            "http://10.0.0.1:1",
            "ftp://127.0.0.1",
            "https://",
            "https://:1",
            "https://ada:secret@team.example",
            "https://team.example/?x=1",
            "https://a b",
            "http://127.0.0.1.evil.example",
            "http://127.0.0.1@example.org",
        ] {
            assert_eq!(server_address(bad), None, "{bad}");
        }
    }
}
