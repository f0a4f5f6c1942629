//! A group of subcommands whose arguments are described only when a command line names the group.
//!
//! Most commands are one of many in their group. Describing all of them takes longer than many a command.

use clap::{ArgMatches, Command, Error, FromArgMatches, Subcommand};

#[derive(Debug)]
pub struct Deferred<T>(pub T);

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Deferred)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Deferred)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Subcommand> Subcommand for Deferred<T> {
    fn augment_subcommands(command: Command) -> Command {
        command.defer(T::augment_subcommands)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        command.defer(T::augment_subcommands_for_update)
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::cli::Cli;

    #[test]
    fn subcommands_of_a_group_are_described_when_it_is_used() {
        let mut root = Cli::command();
        let count = |root: &clap::Command| root.find_subcommand("node").unwrap().get_subcommands().count();
        assert_eq!(count(&root), 0);
        root.build();
        assert!(count(&root) > 5);
    }
}
