//! Finds the code blocks and the inline code of a Markdown text.

/// A code block.
#[derive(Debug, PartialEq)]
pub struct Block {
    /// The line number of its first line, starting at 1.
    pub line: usize,
    pub kind: Kind,
    pub text: String,
    /// Whether only empty lines separate it from the previous block.
    pub follows: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Indented,
    /// Between fences, with its language.
    Fenced(String),
}

/// Returns the code blocks in document order.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    // State of the previous line.
    let (mut is_code, mut is_empty, mut follows) = (false, true, false);
    while let Some((n, line)) = lines.next() {
        if let Some(word) = line.strip_prefix("```") {
            let body: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            let kind = Kind::Fenced(word.trim().to_owned());
            blocks.push(Block { line: n + 2, kind, text: body.join("\n"), follows });
            (is_code, is_empty, follows) = (false, false, true);
        } else if let Some(code) = line.strip_prefix("    ").filter(|_| is_code || is_empty) {
            match blocks.last_mut().filter(|_| is_code) {
                Some(block) => block.text.push_str(&format!("\n{code}")),
                None => {
                    let text = code.to_owned();
                    blocks.push(Block { line: n + 1, kind: Kind::Indented, text, follows });
                }
            }
            (is_code, is_empty, follows) = (true, false, true);
        } else {
            is_empty = line.trim().is_empty();
            follows &= is_empty;
            is_code = false;
        }
    }
    blocks
}

/// Returns the text between backticks outside of code blocks.
pub fn inline(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        is_fenced ^= line.starts_with("```");
        if !is_fenced && !line.starts_with("    ") && !line.starts_with("```") {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

#[test]
fn blocks_and_inline_code_are_found_in_order() {
    let text = "a\n    no code\n\n    one\n    two # x\n\n```\nout\n```\ntext\n\n```json\n{}\n```\n    three\n\n    four\n";
    let block = |line, kind, text: &str, follows| Block { line, kind, text: text.into(), follows };
    let fenced = |word: &str| Kind::Fenced(word.into());
    let expected = [
        block(4, Kind::Indented, "one\ntwo # x", false),
        block(8, fenced(""), "out", true),
        block(13, fenced("json"), "{}", false),
        block(17, Kind::Indented, "four", false),
    ];
    assert_eq!(blocks(text), expected);
    assert_eq!(inline("say `a b` or `c`\n\n    `d`\n\n```\n`e`\n```\n`f`"), ["a b", "c", "f"]);
}
