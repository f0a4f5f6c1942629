//! Chinese numerals as digits: `保留七天` counts as `保留7天`, so that amounts are compared however they are written.

use crate::current::words::UNITS_ZH;

/// Returns the text with the numerals before a unit as digits.
pub fn with_digits(text: String) -> String {
    if !text.chars().any(is_numeral) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(is_numeral) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c| !is_numeral(c)).unwrap_or(from.len());
        let (numeral, after) = from.split_at(end);
        out.push_str(before);
        match value_of(numeral).filter(|_| is_amount(numeral, after)) {
            Some(value) => out.push_str(&value.to_string()),
            None => out.push_str(numeral),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns whether a numeral before this text states an amount. `一个` and `一次` often only mean "a".
fn is_amount(numeral: &str, after: &str) -> bool {
    let is_article = numeral == "一" && ["个", "次", "条", "些"].iter().any(|unit| after.starts_with(unit));
    !is_article && UNITS_ZH.iter().any(|unit| after.starts_with(unit))
}

fn is_numeral(c: char) -> bool {
    digit_of(c).is_some() || scale_of(c).is_some()
}

fn digit_of(c: char) -> Option<u64> {
    let digits = ['零', '一', '二', '三', '四', '五', '六', '七', '八', '九'];
    let position = digits.iter().position(|digit| *digit == c).map(|at| at as u64);
    position.or(if c == '两' { Some(2) } else { None })
}

fn scale_of(c: char) -> Option<u64> {
    Some(match c {
        '十' => 10,
        '百' => 100,
        '千' => 1_000,
        '万' => 10_000,
        _ => return None,
    })
}

/// Returns the number that a numeral stands for, or `None` if it is not written as numbers are.
fn value_of(numeral: &str) -> Option<u64> {
    let (mut total, mut digit) = (0u64, None);
    for c in numeral.chars() {
        match (digit_of(c), scale_of(c)) {
            (Some(0), _) => {}
            (Some(value), _) if digit.is_none() => digit = Some(value),
            (None, Some(10_000)) => {
                total = (total + digit.take().unwrap_or(0)).max(1).checked_mul(10_000)?;
            }
            // Ten at the start has no digit before it.
            (None, Some(scale)) => total += digit.take().unwrap_or(1) * scale,
            _ => return None,
        }
    }
    Some(total + digit.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_digits_converts_amounts_only() {
        for (text, want) in [
            ("访问日志保留七天", "访问日志保留7天"),
            ("保留三十天", "保留30天"),
            ("一百二十秒，两个人", "120秒，2个人"),
            ("三万五千条", "35000条"),
            ("十二位", "12位"),
            ("统一使用一个接口", "统一使用一个接口"),
            ("二三事", "二三事"),
            ("五六天", "五六天"),
            ("no numerals", "no numerals"),
        ] {
            assert_eq!(with_digits(text.to_owned()), want);
        }
    }
}
