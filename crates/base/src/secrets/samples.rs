//! Measures masking on samples: realistic texts with a secret, and ordinary texts that resemble them.
//!
//! The samples were written without a look at the finders. They are a measure, not a list of cases: a change may lose
//! one and gain another, but not fall below the shares that these tests require.

use super::mask;
use std::collections::BTreeMap;

/// Returns the samples of a file with their class.
fn read(file: &str) -> Vec<(String, String)> {
    let mut class = String::new();
    let mut samples = Vec::new();
    for line in file.lines().filter(|line| !line.starts_with("; ")) {
        match line.strip_prefix("# ") {
            Some(name) => class = name.to_owned(),
            None => samples.push((class.clone(), line.replace('¦', "").replace('⏎', "\n"))),
        }
    }
    samples
}

/// Returns whether no eight characters in a row of a secret are left, and the text around it is.
fn is_masked(before: &str, secret: &str, after: &str) -> bool {
    let text = format!("{before}{secret}{after}");
    let masked = mask(&text).0;
    let Some(middle) = masked.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)) else {
        return false;
    };
    let chars: Vec<char> = secret.chars().collect();
    chars.windows(chars.len().min(8)).all(|part| !middle.contains(&part.iter().collect::<String>()))
}

/// Adds one sample to the counts of its class: all samples, and those with the property.
fn count(counts: &mut BTreeMap<String, (usize, usize)>, class: String, has_property: bool) {
    let (all, with) = counts.entry(class).or_default();
    *all += 1;
    *with += usize::from(has_property);
}

fn sum(counts: &BTreeMap<String, (usize, usize)>) -> (usize, usize) {
    counts.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

#[test]
fn mask_samples_are_masked() {
    let mut counts = BTreeMap::new();
    for (class, sample) in read(include_str!("samples/secrets.txt")) {
        let (before, rest) = sample.split_once('«').unwrap();
        let (secret, after) = rest.split_once('»').unwrap();
        let is_masked = is_masked(before, secret, after);
        if !is_masked {
            println!("{class}: {:?}", mask(&format!("{before}{secret}{after}")).0);
        }
        count(&mut counts, class, is_masked);
    }
    let (all, masked) = sum(&counts);
    println!("{masked} of {all}: {counts:?}");
    assert!(all >= 250, "{all}");
    assert!(masked * 100 >= all * 95, "{masked} of {all} are masked");
    for (class, (all, masked)) in counts {
        assert!(masked * 100 >= all * 90, "{class}: {masked} of {all} are masked");
    }
}

#[test]
fn mask_ordinary_samples_are_kept() {
    let mut counts = BTreeMap::new();
    for (class, sample) in read(include_str!("samples/ordinary.txt")) {
        let masked = mask(&sample).0;
        if masked != sample {
            println!("{class}: {masked:?}");
        }
        count(&mut counts, class, masked != sample);
    }
    let (all, changed) = sum(&counts);
    println!("{changed} of {all}: {counts:?}");
    assert!(all >= 240, "{all}");
    assert!(changed * 100 <= all * 2, "{changed} of {all} are changed");
}
