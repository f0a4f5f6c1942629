//! `--limit`: how many entries a list shows.

use std::num::ParseIntError;

/// More than any list has, and small enough for every store to add to.
const ALL: usize = 1_000_000_000;

/// Parses the value of `--limit`. Every list takes 0 for all entries.
pub fn parse(text: &str) -> Result<usize, ParseIntError> {
    let limit: usize = text.parse()?;
    Ok(if limit == 0 { ALL } else { limit.min(ALL) })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn zero_means_all_in_every_command() {
        assert_eq!(["0", "7"].map(|text| parse(text).unwrap()), [ALL, 7]);
        assert!(parse("-1").is_err() && parse("many").is_err());
        let mut root = Cli::command();
        root.build();
        let mut commands = vec![&root];
        let mut limits = 0;
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands());
            for arg in command.get_arguments().filter(|arg| arg.get_id() == "limit") {
                let help = arg.get_help().unwrap().to_string();
                assert!(help.ends_with("; 0 shows all"), "{}: {help}", command.get_name());
                limits += 1;
            }
        }
        assert!(limits >= 14, "{limits}");
    }
}
