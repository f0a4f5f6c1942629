//! The clock. All code gets the current time from here, so that `TANMI_NOW` can fix it for tests and replays.
//!
//! Domain code takes a [`Millis`] as an argument; only the entry points of the program call [`now`].

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::civil::{Date, DateTime};
use jiff::fmt::friendly::SpanParser;
use jiff::{SpanRelativeTo, Timestamp, tz::TimeZone};

/// Milliseconds since the Unix epoch.
pub type Millis = i64;

/// The length of a UTC day, which is always the same.
pub const DAY: Millis = 86_400_000;

/// The longest duration that a user can give.
const MAX_DURATION: Millis = 100_000 * DAY;

/// Returns the current time, or `TANMI_NOW` (milliseconds since the epoch) if that is set to a number.
pub fn now() -> Millis {
    if let Some(fixed) = std::env::var("TANMI_NOW").ok().and_then(|value| value.trim().parse().ok()) {
        return fixed;
    }
    #[allow(clippy::disallowed_methods)] // the only call in the program
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |elapsed| i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
}

/// Whether local time is UTC in this process, not the time of the system's zone.
static IS_UTC: AtomicBool = AtomicBool::new(false);

/// Makes UTC the local time of this process, for a server whose callers live in many zones.
pub fn use_utc() {
    IS_UTC.store(true, Ordering::Relaxed);
}

fn local_zone() -> TimeZone {
    if IS_UTC.load(Ordering::Relaxed) { TimeZone::UTC } else { TimeZone::system() }
}

/// Returns local wall-clock time in the format of log entries: `YYYY-MM-DD HH:mm:ss`.
///
/// Reads the system's time zone, which is too slow for a hook; hooks use millisecond timestamps instead.
pub fn local_stamp(at: Millis) -> String {
    match Timestamp::from_millisecond(at) {
        Ok(stamp) => stamp.to_zoned(local_zone()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => String::from("0000-00-00 00:00:00"),
    }
}

/// Parses a time as [`local_stamp`] writes it after [`use_utc`].
pub fn parse_utc_stamp(text: &str) -> Option<Millis> {
    let time: DateTime = text.trim().parse().ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// Parses a time as [`local_stamp`] writes it. Of a time that occurs twice when clocks are set back, returns the first.
pub fn parse_local_stamp(text: &str) -> Option<Millis> {
    let time: DateTime = text.trim().parse().ok()?;
    Some(time.to_zoned(local_zone()).ok()?.timestamp().as_millisecond())
}

/// Returns the begin of the local day of a time.
pub fn local_midnight(at: Millis) -> Millis {
    let start = |stamp: Timestamp| stamp.to_zoned(local_zone()).start_of_day();
    let start = Timestamp::from_millisecond(at).and_then(start);
    start.map_or(at, |start| start.timestamp().as_millisecond())
}

/// Returns the UTC day of a time as `YYYY-MM-DD`. Needs no time zone, so it is fast enough for hooks.
pub fn utc_day(at: Millis) -> String {
    let day =
        Timestamp::from_millisecond(at).map(|stamp| TimeZone::UTC.to_datetime(stamp).date().to_string());
    day.unwrap_or_else(|_| String::from("0000-00-00"))
}

/// Returns a time in UTC as RFC 3339 writes it: `YYYY-MM-DDTHH:mm:ss.sssZ`.
pub fn utc_stamp(at: Millis) -> String {
    Timestamp::from_millisecond(at).map_or_else(|_| String::new(), |stamp| format!("{stamp:.3}"))
}

/// Returns whether a text is a day of the calendar as [`utc_day`] writes it: `YYYY-MM-DD`.
pub fn is_day(text: &str) -> bool {
    text.parse().is_ok_and(|day: Date| day.to_string() == text)
}

/// Parses a duration in days or smaller units, such as `30m`, `2h`, `1d` or `1h30m`. Returns `None` for any other unit,
/// for a negative duration and for one that is too long.
pub fn parse_duration(text: &str) -> Option<Millis> {
    let span = SpanParser::new().parse_span(text).ok().filter(|span| span.get_weeks() == 0)?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Millis::try_from(duration.as_millis()).ok().filter(|millis| (0..=MAX_DURATION).contains(millis))
}

/// Returns an id that changes at every start of the machine. Files written without fsync are trusted only within
/// one boot.
///
/// On systems without a boot id the result is constant, and recovery then trusts the page cache.
pub fn boot_id() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map(|id| id.trim().to_owned())
            .unwrap_or_else(|_| String::from("unknown"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_day_only_days_of_the_calendar_are_days() {
        for text in ["1970-01-01", "2024-02-29", "9999-12-31"] {
            assert!(is_day(text), "{text}");
        }
        let others = [
            "",
            "20240229",
            "2023-02-29",
            "2024-13-01",
            "0000-00-00",
            "2024-1-1",
            "2024-01-01T00:00",
            " 2024-01-01",
        ];
        for text in others {
            assert!(!is_day(text), "{text}");
        }
    }

    #[test]
    fn parse_local_stamp_returns_time_of_stamp() {
        for at in [0, 1_765_432_100_000] {
            assert_eq!(parse_local_stamp(&local_stamp(at)), Some(at));
            assert!(local_stamp(local_midnight(at)).ends_with(" 00:00:00"));
        }
        assert_eq!(parse_utc_stamp("2025-12-11 05:48:20"), Some(1_765_432_100_000));
        for text in ["", "yesterday", "2025-12-11 25:00:00", "0000-00-00 00:00:00"] {
            assert_eq!((parse_local_stamp(text), parse_utc_stamp(text)), (None, None), "{text}");
        }
    }

    #[test]
    fn parse_duration_units_up_to_days_are_accepted() {
        for (text, expected) in [
            ("0d", Some(0)),
            ("45s", Some(45_000)),
            ("30m", Some(30 * 60_000)),
            ("+2h", Some(2 * 3_600_000)),
            ("07d", Some(7 * DAY)),
            ("1h30m", Some(90 * 60_000)),
            ("2 hours", Some(2 * 3_600_000)),
            ("99999d", Some(99_999 * DAY)),
        ] {
            assert_eq!(parse_duration(text), expected, "{text}");
        }
        let rejected = [
            "",
            "5",
            "m",
            "d",
            "-1h",
            "1h ago",
            "2w",
            "1mo",
            "1y",
            " 5m",
            "5M",
            "100001d",
            "时",
            "8 may 2023",
        ];
        for text in rejected {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
