//! `tanmi completions` and `tanmi man`, generated from the definition of the command line. Both are in English.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use tanmi_app::Error;

use super::Result;
use crate::cli::Cli;
use crate::out;

pub fn completions(shell: Shell) -> Result {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tanmi", &mut text);
    out::raw(&text);
    Ok(())
}

pub fn man(dir: Option<&Path>) -> Result {
    let Some(dir) = dir else {
        let mut text = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut text).map_err(Error::io("man"))?;
        out::raw(&text);
        return Ok(());
    };
    std::fs::create_dir_all(dir).map_err(Error::io(dir))?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(Error::io(dir))
}
