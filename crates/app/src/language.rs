//! Decides the language of a text. This is the one rule:
//!
//! - For a person (command line, page, HTTP): the language that the request asks for, else the setting `language`, else
//!   the locale. The texts of a workspace do not matter.
//! - For an agent (hooks, tools, instructions of the server): the language of its workspace, else of the prompt, else of
//!   memory, else that of the person.

use tanmi_base::Lang;
use tanmi_engine::MemoryFacts;
use tanmi_workspace::model::Workspace;

/// Returns the language of a text for a person.
pub fn for_person(requested: Option<Lang>, setting: Option<Lang>, locale: Lang) -> Lang {
    requested.or(setting).unwrap_or(locale)
}

/// Returns the language of a text for an agent. `person` is the language of the person that the agent works for.
pub fn for_agent(
    workspace: Option<&Workspace>,
    prompt: Option<&str>,
    memory: Option<&MemoryFacts>,
    person: Lang,
) -> Lang {
    let found = workspace.and_then(Workspace::lang).or_else(|| Lang::of_text(prompt?));
    found.or_else(|| memory.and_then(lang_of_memory)).unwrap_or(person)
}

/// Returns the language of the core memory, else of the last summary, else of the latest fact.
fn lang_of_memory(memory: &MemoryFacts) -> Option<Lang> {
    let summary = memory.summary.iter().map(|summary| summary.summary.as_str());
    let facts = memory.recent.iter().map(|fact| fact.content.as_str());
    std::iter::once(memory.core.as_str()).chain(summary).chain(facts).find_map(Lang::of_text)
}

#[cfg(test)]
mod tests {
    use tanmi_engine::FactLine;

    use super::*;

    #[test]
    fn person_reads_requested_language_then_setting_then_locale() {
        assert_eq!(for_person(Some(Lang::Zh), Some(Lang::En), Lang::En), Lang::Zh);
        assert_eq!(for_person(None, Some(Lang::Zh), Lang::En), Lang::Zh);
        assert_eq!(for_person(None, None, Lang::Zh), Lang::Zh);
    }

    #[test]
    fn agent_without_workspace_reads_language_of_prompt_then_memory_then_person() {
        let memory = |core: &str, fact: &str| MemoryFacts {
            core: core.to_owned(),
            recent: vec![FactLine { content: fact.to_owned(), ..FactLine::default() }],
            ..MemoryFacts::default()
        };
        let lang = |prompt, memory: Option<&MemoryFacts>| for_agent(None, prompt, memory, Lang::Zh);
        assert_eq!(lang(Some("go on"), Some(&memory("记忆", ""))), Lang::En);
        assert_eq!(lang(Some("…"), Some(&memory("a rule", "事实"))), Lang::En, "the core memory comes first");
        assert_eq!(lang(None, Some(&memory("", "a fact"))), Lang::En);
        assert_eq!(lang(None, Some(&memory("", ""))), Lang::Zh);
    }
}
