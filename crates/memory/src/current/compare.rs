//! Decides from two statements whether the newer one replaces the older one.

use super::Frequencies;
use super::statement::{Statement, Term};
use super::words::{GENERIC, SINGLE_VALUED};

/// Returns whether a newer statement says that the matter of an older one is different now.
pub fn is_replaced(old: &Statement, new: &Statement, frequencies: &Frequencies<'_>) -> bool {
    let has_names = old.name.is_some() && new.name.is_some();
    let can_change = new.has_change || new.has_now || has_other_values(old, new) || has_other_sense(old, new);
    // Most pairs end here, before their terms are compared.
    if !(can_change || has_names) || new.is_addition || new.is_open_or_past || old.contrasts_with(new) {
        return false;
    }
    is_about_change(old, new) && Pair::new(old, new).is_replaced(frequencies)
}

/// Returns whether two statements may be about one matter: they have the same subject and at least half of
/// the terms of the shorter one.
pub fn can_concern_same_matter(old: &Statement, new: &Statement) -> bool {
    let tenths = [
        old.tenths_shared(new),
        new.tenths_shared(old),
        old.tenths_shared_of_main(new),
        new.tenths_shared_of_main(old),
    ];
    let is_half = tenths.iter().any(|tenths| *tenths >= 5);
    let has_same_terms = is_half && old.shared(new).count() >= 2 && shared_subject(old, new).is_some();
    has_same_terms && !new.is_addition && !new.is_open_or_past && !old.contrasts_with(new)
}

fn has_other_values(old: &Statement, new: &Statement) -> bool {
    !old.values.is_empty() && !new.values.is_empty() && old.values != new.values
}

fn has_other_sense(old: &Statement, new: &Statement) -> bool {
    old.is_negative != new.is_negative
}

/// Returns whether the older statement says what the newer one ends, or has an amount if the newer one
/// changes one. Otherwise the change is about another aspect.
fn is_about_change(old: &Statement, new: &Statement) -> bool {
    let is_about_ended = new.ended.as_deref().is_none_or(|ended| old.states_most_of(ended));
    is_about_ended && (!new.has_amount_change || !old.values.is_empty())
}

/// Two statements and what they share.
struct Pair<'a> {
    old: &'a Statement,
    new: &'a Statement,
    shared: Vec<&'a Term>,
    /// In tenths, of the terms of each statement.
    of_old: usize,
    of_new: usize,
    /// In tenths, of the terms of the first clause of each statement.
    of_old_main: usize,
    of_new_main: usize,
}

impl<'a> Pair<'a> {
    fn new(old: &'a Statement, new: &'a Statement) -> Pair<'a> {
        Pair {
            old,
            new,
            shared: old.shared(new).collect(),
            of_old: old.tenths_shared(new),
            of_new: new.tenths_shared(old),
            of_old_main: old.tenths_shared_of_main(new),
            of_new_main: new.tenths_shared_of_main(old),
        }
    }

    fn is_replaced(&self, frequencies: &Frequencies<'_>) -> bool {
        let is_replaced = self.names_what_ends() || self.is_changed_of_subject();
        is_replaced && !self.shared.iter().all(|term| frequencies.is_common(&term.text))
    }

    /// Returns whether the newer statement names what it ends, all of which the older one says. Its subject
    /// may then be another word for the same thing, or none.
    fn names_what_ends(&self) -> bool {
        let (old, new) = (self.old, self.new);
        let has_ended = new.has_change && new.ended.as_deref().is_some_and(|ended| old.states_all_of(ended));
        let can_have_subject = || new.subject().next().is_none() || shared_subject(old, new).is_some();
        has_ended
            && self.shared.len() + old.values.intersection(&new.values).count() >= 2
            && can_have_subject()
    }

    /// Returns whether both statements have the same subject, and the newer one says something else of it.
    fn is_changed_of_subject(&self) -> bool {
        let (old, new) = (self.old, self.new);
        let says_more = self.shared.len() < new.terms.len()
            || !new.values.is_subset(&old.values)
            || has_other_sense(old, new);
        let Some(subject) = shared_subject(old, new).filter(|_| says_more) else { return false };
        let is_beyond = |term: &Term| {
            !subject.iter().any(|own| own.text == term.text) && !GENERIC.contains(&term.text.as_str())
        };
        let shares_beyond = self.shared.iter().any(|term| is_beyond(term));
        let is_changed = new.has_change && self.is_changed(shares_beyond);
        let is_changed_now = new.has_now && shares_beyond && self.shared.len() >= 2 && self.of_old >= 5;
        let is_opposite =
            has_other_sense(old, new) && self.shared.len() >= 2 && self.of_old >= 7 && self.of_new >= 5;
        is_changed || is_changed_now || is_opposite || self.has_other_value() || has_other_name(old, new)
    }

    /// Returns whether the change that the newer statement names is that of the older one. `shares_beyond`
    /// tells whether they share more than their subject.
    fn is_changed(&self, shares_beyond: bool) -> bool {
        let (old, new) = (self.old, self.new);
        let shared_of_subject = self.shared.iter().filter(|term| new.is_subject(term)).count();
        let is_about_subject = self.of_old >= 6 || shared_of_subject * 2 >= new.subject().count();
        // Two statements about changes are often about two events.
        let min_of_old = if old.has_change { 6 } else { 4 };
        let shares_enough =
            shares_beyond && self.shared.len() >= 2 && self.of_old.max(self.of_old_main) >= min_of_old;
        let is_of_state = || old.has_state && old.has_same_subject(new) && is_specific(old);
        is_about_subject && (shares_enough || is_of_state())
    }

    /// Returns whether the newer statement has another value in nearly the same sentence, or names the old
    /// value beside the new one: "now listens on 7810, since 7700 was taken".
    fn has_other_value(&self) -> bool {
        let (old, new) = (self.old, self.new);
        let has_other = has_other_values(old, new);
        let in_sentence = has_other && self.of_old >= 9 && self.of_new >= 5;
        let has_other_in_main =
            !old.main_values.is_empty() && !new.main_values.is_empty() && old.main_values != new.main_values;
        let in_main = has_other_in_main && self.of_old_main >= 9 && self.of_new_main >= 5;
        let names_old = has_other && (new.has_now || new.has_change) && old.values.is_subset(&new.values);
        self.shared.len() >= 2 && (in_sentence || in_main || names_old)
    }
}

/// Returns the subject that both statements have. `Some` and empty if neither names one: they are orders.
fn shared_subject<'a>(old: &'a Statement, new: &'a Statement) -> Option<Vec<&'a Term>> {
    let (of_old, of_new): (Vec<&Term>, Vec<&Term>) = (old.subject().collect(), new.subject().collect());
    let is_in = |subject: &[&Term], of: &'a Statement, other: &'a Statement| {
        of.shared(other).filter(|term| term.is_subject).count() == subject.len()
    };
    match (of_old.is_empty(), of_new.is_empty()) {
        (true, true) => Some(of_old),
        (false, _) if is_in(&of_old, old, new) => Some(of_old),
        (_, false) if is_in(&of_new, new, old) => Some(of_new),
        _ => None,
    }
}

/// Returns whether the subject names one thing of which there is one value: two words, or four Chinese characters.
fn is_specific(statement: &Statement) -> bool {
    let is_ascii = statement.subject().all(|term| term.text.is_ascii());
    statement.subject().count() >= if is_ascii { 2 } else { 3 }
}

/// Returns whether both statements name the value of the same thing, and name another one: "The default
/// branch is main".
fn has_other_name(old: &Statement, new: &Statement) -> bool {
    let is_single = old.head.chars().all(|c| !c.is_ascii()) || SINGLE_VALUED.contains(&old.head.as_str());
    let (Some(one), Some(two)) = (&old.name, &new.name) else { return false };
    let has_one_value = is_single || old.is_linked || new.is_linked;
    one != two && has_one_value && old.has_same_subject(new) && is_specific(old)
}
