//! Finds dates in a text: `2023-05-08`, `8 May, 2023`, `May 8`, `2023年5月8日`, `5月8日`, yesterday, 昨天,
//! last week, 上周, 3 days ago, 3天前. Used for timestamps written by other tools and for questions that name
//! a day.

use jiff::civil::{Date, DateTime};
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use tanmi_base::Millis;

/// A date, or the known parts of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatePattern {
    pub year: Option<i16>,
    pub month: Option<i8>,
    pub day: Option<i8>,
}

impl DatePattern {
    /// Returns the UTC date of a time.
    pub fn utc_date(at: Millis) -> Option<Date> {
        Timestamp::from_millisecond(at).ok().map(|stamp| TimeZone::UTC.to_datetime(stamp).date())
    }

    /// Returns how well a date matches, from 0 to 1; 1 if a given day matches.
    pub fn match_score(&self, date: Date) -> f32 {
        let same = |expected: Option<i16>, actual: i16| expected.is_none_or(|expected| expected == actual);
        let is_match = same(self.year, date.year())
            && same(self.month.map(i16::from), i16::from(date.month()))
            && same(self.day.map(i16::from), i16::from(date.day()));
        match (is_match, self.day.is_some(), self.month.is_some()) {
            (false, _, _) => 0.0,
            (true, true, _) => 1.0,
            (true, false, true) => 0.5,
            (true, false, false) => 0.2,
        }
    }

    /// Returns the terms that memories of a matching date have in the index, see [`crate::rank::body_terms`].
    pub fn terms(&self) -> Vec<String> {
        match (self.year, self.month, self.day) {
            (Some(year), Some(month), Some(day)) => {
                Date::new(year, month, day).map(|date| date.to_string()).into_iter().collect()
            }
            (_, Some(month), Some(day)) => vec![format!("{month}月{day}日")],
            (year, month, _) => {
                let mut terms: Vec<String> = year.map(|year| year.to_string()).into_iter().collect();
                terms.extend(month.into_iter().flat_map(|month| crate::segment::terms(month_name(month))));
                terms
            }
        }
    }

    fn is_valid(&self) -> bool {
        self.month.is_none_or(|month| (1..=12).contains(&month))
            && self.day.is_none_or(|day| (1..=31).contains(&day))
    }
}

impl From<Date> for DatePattern {
    fn from(date: Date) -> DatePattern {
        DatePattern { year: Some(date.year()), month: Some(date.month()), day: Some(date.day()) }
    }
}

/// Names of months as single words of a sentence. A parser of jiff needs the position and the form of a date instead.
const MONTHS: &[(&str, i8)] = &[
    ("january", 1),
    ("february", 2),
    ("march", 3),
    ("april", 4),
    ("may", 5),
    ("june", 6),
    ("july", 7),
    ("august", 8),
    ("september", 9),
    ("october", 10),
    ("november", 11),
    ("december", 12),
    ("jan", 1),
    ("feb", 2),
    ("mar", 3),
    ("apr", 4),
    ("jun", 6),
    ("jul", 7),
    ("aug", 8),
    ("sep", 9),
    ("sept", 9),
    ("oct", 10),
    ("nov", 11),
    ("dec", 12),
];

pub fn month_name(month: i8) -> &'static str {
    MONTHS.iter().find(|(_, number)| *number == month).map_or("", |(name, _)| name)
}

/// Returns every date that a text names. `now` resolves words such as yesterday.
pub fn find_dates(text: &str, now: Millis) -> Vec<DatePattern> {
    let mut days = find_absolute_dates(text);
    days.extend(find_relative_dates(text, now).into_iter().map(DatePattern::from));
    days.extend(find_relative_periods(text, now));
    days.dedup();
    days
}

fn find_absolute_dates(text: &str) -> Vec<DatePattern> {
    let mut days = find_chinese_dates(text);
    days.extend(find_western_dates(text));
    days.retain(DatePattern::is_valid);
    days
}

fn find_relative_dates(text: &str, now: Millis) -> Vec<Date> {
    const WORDS: &[(&str, i64)] = &[
        ("今天", 0),
        ("昨天", 1),
        ("大前天", 3),
        ("前天", 2),
        ("today", 0),
        ("day before yesterday", 2),
        ("yesterday", 1),
    ];
    let Some(today) = DatePattern::utc_date(now) else { return Vec::new() };
    let mut lower = text.to_lowercase();
    let mut days = Vec::new();
    for (word, back) in WORDS {
        if lower.contains(word) {
            // Remove the word, because a longer one contains a shorter one.
            lower = lower.replace(word, ",");
            days.extend(today.checked_sub(back.days()).ok());
        }
    }
    for phrase in ["天前", " days ago", " day ago"] {
        for (at, _) in lower.match_indices(phrase) {
            let start = lower[..at]
                .rfind(|c: char| !c.is_ascii_digit())
                .map_or(0, |before| before + lower[before..].chars().next().map_or(1, char::len_utf8));
            let back = lower[start..at].parse::<i64>().ok().filter(|back| *back < MAX_DAYS_AGO);
            days.extend(back.and_then(|back| today.checked_sub(back.days()).ok()));
        }
    }
    days
}

/// Maximum number in `3 days ago`.
const MAX_DAYS_AGO: i64 = 10_000;

/// Finds weeks, months and years that are named by a word. A week is returned as its days.
fn find_relative_periods(text: &str, now: Millis) -> Vec<DatePattern> {
    const WEEKS: &[(&str, i64)] =
        &[("上周", 1), ("上星期", 1), ("last week", 1), ("本周", 0), ("this week", 0)];
    const MONTHS: &[(&str, i64)] =
        &[("上个月", 1), ("上月", 1), ("last month", 1), ("这个月", 0), ("this month", 0)];
    const YEARS: &[(&str, i64)] =
        &[("前年", 2), ("去年", 1), ("last year", 1), ("今年", 0), ("this year", 0)];
    let Some(today) = DatePattern::utc_date(now) else { return Vec::new() };
    let lower = text.to_lowercase();
    let named = |words: &'static [(&str, i64)]| {
        words.iter().filter(|(word, _)| lower.contains(word)).map(|(_, back)| *back).collect::<Vec<_>>()
    };
    let mut found = Vec::new();
    for back in named(WEEKS) {
        let since_monday = i64::from(today.weekday().to_monday_zero_offset());
        let days = (0..7).filter_map(|day| today.checked_sub((since_monday + 7 * back - day).days()).ok());
        found.extend(days.map(DatePattern::from));
    }
    for date in named(MONTHS).into_iter().filter_map(|back| today.checked_sub(back.months()).ok()) {
        found.push(DatePattern { year: Some(date.year()), month: Some(date.month()), day: None });
    }
    for date in named(YEARS).into_iter().filter_map(|back| today.checked_sub(back.years()).ok()) {
        found.push(DatePattern { year: Some(date.year()), ..DatePattern::default() });
    }
    found
}

/// Finds `2023年5月8日`, also without the year or the day.
fn find_chinese_dates(text: &str) -> Vec<DatePattern> {
    let chars: Vec<char> = text.chars().collect();
    let number_before = |at: usize| -> Option<(i16, usize)> {
        let mut start = at;
        while start > 0 && chars[start - 1].is_ascii_digit() && at - start < 4 {
            start -= 1;
        }
        let digits: String = chars[start..at].iter().collect();
        digits.parse().ok().map(|number| (number, start))
    };
    let mut days = Vec::new();
    for (at, sign) in chars.iter().enumerate() {
        match sign {
            '月' => {
                let Some((month, start)) = number_before(at) else { continue };
                let year =
                    (start > 0 && chars[start - 1] == '年').then(|| number_before(start - 1)).flatten();
                let after: String =
                    chars[at + 1..].iter().take_while(|c| c.is_ascii_digit()).take(2).collect();
                let is_day = chars.get(at + 1 + after.len()).is_some_and(|c| matches!(c, '日' | '号'));
                days.push(DatePattern {
                    year: year.map(|(year, _)| full_year(year)),
                    month: i8::try_from(month).ok(),
                    day: is_day.then(|| after.parse().ok()).flatten(),
                });
            }
            '年' if !chars[at + 1..].iter().take(3).any(|c| *c == '月') => {
                if let Some((year, _)) = number_before(at).filter(|(year, _)| (1900..2200).contains(year)) {
                    days.push(DatePattern { year: Some(year), ..DatePattern::default() });
                }
            }
            _ => {}
        }
    }
    days
}

fn full_year(year: i16) -> i16 {
    if year < 100 { 2000 + year } else { year }
}

/// Finds `2023-05-08`, `2023/5/8`, `8 May, 2023`, `May 8th 2023`, `May 2023`, `in May`.
fn find_western_dates(text: &str) -> Vec<DatePattern> {
    let lower = text.to_lowercase();
    let is_break = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '/'));
    let words: Vec<&str> = lower.split(is_break).filter(|word| !word.is_empty()).collect();
    let mut days = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if let Some(day) = parse_numeric_date(word) {
            days.push(day);
            continue;
        }
        let Some((_, month)) = MONTHS.iter().find(|(name, _)| name == word) else { continue };
        let number = |word: Option<&&str>| -> Option<i16> {
            let word = word?;
            ["st", "nd", "rd", "th"]
                .iter()
                .find_map(|end| word.strip_suffix(end))
                .unwrap_or(word)
                .parse()
                .ok()
        };
        let (before, after, later) = (
            at.checked_sub(1).and_then(|at| number(words.get(at))),
            number(words.get(at + 1)),
            number(words.get(at + 2)),
        );
        let as_day =
            |number: Option<i16>| number.filter(|n| (1..=31).contains(n)).and_then(|n| i8::try_from(n).ok());
        let as_year = |number: Option<i16>| number.filter(|n| (1900..2200).contains(n));
        let day = as_day(before).or(as_day(after));
        let year = as_year(after).or(as_year(later));
        // "may" alone is usually a verb.
        if *word == "may"
            && day.is_none()
            && year.is_none()
            && !matches!(words.get(at.wrapping_sub(1)), Some(&"in" | &"last" | &"since"))
        {
            continue;
        }
        days.push(DatePattern { year, month: Some(*month), day });
    }
    days
}

fn parse_numeric_date(word: &str) -> Option<DatePattern> {
    let word = word.split('t').next().unwrap_or(word);
    let mut parts = word.split(['-', '/']);
    let year: i16 = parts.next().filter(|part| part.len() == 4)?.parse().ok()?;
    let month: i8 = parts.next()?.parse().ok()?;
    let day: Option<i8> = parts.next().and_then(|part| part.parse().ok());
    (1900..2200).contains(&year).then_some(DatePattern { year: Some(year), month: Some(month), day })
}

/// Parses a timestamp as other tools write it. Returns `None` if it contains no full date.
pub fn parse(text: &str) -> Option<Millis> {
    let text = text.trim();
    if let Ok(stamp) = text.parse::<Timestamp>() {
        return Some(stamp.as_millisecond());
    }
    if let Ok(number) = text.parse::<i64>() {
        // Seconds or milliseconds since the epoch, for plausible dates.
        return match number {
            100_000_000..=9_999_999_999 => Some(number * 1000),
            100_000_000_000..=9_999_999_999_999 => Some(number),
            _ => None,
        };
    }
    if let Ok(time) = text.replace(' ', "T").parse::<DateTime>() {
        return utc_millis(time);
    }
    let day = find_absolute_dates(text)
        .into_iter()
        .find(|day| day.year.is_some() && day.month.is_some() && day.day.is_some())?;
    let date = Date::new(day.year?, day.month?, day.day?).ok()?;
    let (hour, minute) = parse_clock(text).unwrap_or((0, 0));
    utc_millis(date.at(hour, minute, 0, 0))
}

fn utc_millis(time: DateTime) -> Option<Millis> {
    TimeZone::UTC.to_timestamp(time).ok().map(|stamp| stamp.as_millisecond())
}

/// Finds a time of day: `1:56 pm`, `13:56`.
fn parse_clock(text: &str) -> Option<(i8, i8)> {
    let lower = text.to_lowercase();
    let at = lower.find(':')?;
    let hour: i8 = lower[..at]
        .chars()
        .rev()
        .take_while(char::is_ascii_digit)
        .collect::<String>()
        .chars()
        .rev()
        .collect::<String>()
        .parse()
        .ok()?;
    let minute: i8 = lower[at + 1..].chars().take(2).collect::<String>().parse().ok()?;
    let hour = match (lower.contains("pm"), lower.contains("am"), hour) {
        (true, _, 12) => 12,
        (true, _, hour) => hour.checked_add(12)?,
        (_, true, 12) => 0,
        (_, _, hour) => hour,
    };
    ((0..24).contains(&hour) && (0..60).contains(&minute)).then_some((hour, minute))
}

/// Returns the start of a day that is named by a word, such as yesterday.
pub fn day_start(text: &str, now: Millis) -> Option<Millis> {
    utc_millis(find_relative_dates(text, now).into_iter().next()?.at(0, 0, 0, 0))
}

/// Returns the time as RFC 3339 in UTC, as in records.
pub fn iso(at: Millis) -> String {
    Timestamp::from_millisecond(at)
        .map(|stamp| stamp.to_string())
        .unwrap_or_else(|_| String::from("1970-01-01T00:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_longer_relative_word_is_not_counted_twice() {
        let now = 1_765_432_100_000;
        let days =
            |text: &str| find_dates(text, now).into_iter().filter_map(|day| day.day).collect::<Vec<_>>();
        assert_eq!(days("what was said the day before yesterday?"), [9]);
        assert_eq!(days("yesterday and the day before yesterday"), [9, 10]);
        assert_eq!(days("昨天"), [10]);
        assert_eq!(days("3 days ago"), [8]);
        assert_eq!(days("大前天"), [8]);
        assert_eq!(days("在10天前"), [1]);
        assert!(days("days ago, 99999999999999999999天前").is_empty());
        assert_eq!(parse_clock("120:56 pm"), None);
    }

    #[test]
    fn named_relative_period_returns_its_days_month_or_year() {
        // 2025-12-11, a Thursday.
        let now = 1_765_432_100_000;
        for text in ["last week", "上周"] {
            let days: Vec<i8> = find_dates(text, now).into_iter().filter_map(|day| day.day).collect();
            assert_eq!(days, [1, 2, 3, 4, 5, 6, 7], "{text}");
        }
        for text in ["last month", "上个月"] {
            let month = DatePattern { year: Some(2025), month: Some(11), day: None };
            assert_eq!(find_dates(text, now), [month], "{text}");
        }
        for text in ["last year", "去年"] {
            assert_eq!(find_dates(text, now), [DatePattern { year: Some(2024), ..DatePattern::default() }]);
        }
        assert_eq!(month_terms(2025, 11), ["2025", "novemb"]);
    }

    fn month_terms(year: i16, month: i8) -> Vec<String> {
        DatePattern { year: Some(year), month: Some(month), day: None }.terms()
    }

    #[test]
    fn named_finds_dates_in_text() {
        let day = |year, month, day| DatePattern { year, month, day };
        let cases: &[(&str, DatePattern)] = &[
            ("on 2023-05-08 we", day(Some(2023), Some(5), Some(8))),
            ("2023/5/8", day(Some(2023), Some(5), Some(8))),
            ("1:56 pm on 8 May, 2023", day(Some(2023), Some(5), Some(8))),
            ("May 8th, 2023", day(Some(2023), Some(5), Some(8))),
            ("in July 2023", day(Some(2023), Some(7), None)),
            ("on 3 June", day(None, Some(6), Some(3))),
            ("2023年5月8日", day(Some(2023), Some(5), Some(8))),
            ("5月8号", day(None, Some(5), Some(8))),
            ("2023年", day(Some(2023), None, None)),
            ("昨天", day(Some(1970), Some(1), Some(1))),
        ];
        for (text, want) in cases {
            assert_eq!(find_dates(text, 86_400_000), [*want], "{text}");
        }
        for text in ["it may rain", "version 2.3", "13月", "the first of them", "99/99"] {
            assert_eq!(find_dates(text, 0), [], "{text}");
        }
    }

    #[test]
    fn parse_accepts_foreign_timestamps() {
        let may = 1_683_504_000_000;
        for text in [
            "2023-05-08T00:00:00Z",
            "2023-05-08",
            "2023-05-08 00:00:00",
            "8 May, 2023",
            "1683504000",
            "1683504000000",
            "2023年5月8日",
        ] {
            assert_eq!(parse(text), Some(may), "{text}");
        }
        assert_eq!(parse("1:56 pm on 8 May, 2023"), Some(may + (13 * 60 + 56) * 60_000));
        for text in ["", "null", "soon", "yesterday", "99", "2023-99-99", "NaN"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(iso(may), "2023-05-08T00:00:00Z");
    }

    proptest::proptest! {
        #[test]
        fn named_and_parse_any_text_do_not_panic(text in ".{0,60}", digits in "[0-9年月日:/-]{0,16}") {
            for text in [text, digits] {
                find_dates(&text, 0);
                parse(&text);
            }
        }
    }
}
