//! `tanmi completions` and `tanmi man`, generated from the definition of the command line. Both are in
//! English.

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
    out::raw(with_ids(shell, String::from_utf8_lossy(&text).into_owned()).as_bytes());
    Ok(())
}

/// Returns a completion script that also completes ids and titles, which `tanmi complete-line` prints. In
/// other shells only commands and options are completed.
fn with_ids(shell: Shell, script: String) -> String {
    match shell {
        Shell::Bash => script + BASH_IDS,
        Shell::Fish => script + FISH_IDS,
        // The function has to be defined before the script ends, because its end calls the completion.
        Shell::Zsh => match script.split_once("\n\n") {
            Some((head, rest)) => {
                format!("{head}\n\n{ZSH_IDS}{}", rest.replace(":_default'", ":_tanmi_ids'"))
            }
            None => script,
        },
        _ => script,
    }
}

const BASH_IDS: &str = r#"
_tanmi_with_ids() {
    _tanmi "$@"
    local line ids=()
    while IFS= read -r line; do
        ids+=("$(printf '%q' "${line%%$'\t'*}")")
    done < <(tanmi complete-line -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)
    # Where an id is expected, file names would only be in the way.
    (( ${#ids[@]} == 0 )) || COMPREPLY=("${ids[@]}")
}
complete -F _tanmi_with_ids -o bashdefault -o default tanmi
"#;

const FISH_IDS: &str = "
complete -c tanmi -a '(tanmi complete-line -- (commandline -opc) (commandline -ct) 2>/dev/null)'
";

const ZSH_IDS: &str = r#"_tanmi_ids() {
    local -a typed lines ids titles
    typed=(${(Q)${(z)LBUFFER}})
    [[ $LBUFFER == *' ' ]] && typed+=('')
    lines=(${(f)"$(tanmi complete-line -- "${typed[@]}" 2>/dev/null)"})
    (( $#lines )) || { _default; return; }
    ids=("${(@)lines%%$'\t'*}")
    titles=("${(@)lines//$'\t'/  }")
    compadd -l -d titles -a ids
}

"#;

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
