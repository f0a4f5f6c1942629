//! Converts Markdown to a tree of harmless elements, which the page builds with the DOM, so that text never becomes
//! markup. An element is `[name, child…]`, or `["a", {"href": …}, child…]`; a text is a string.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag};
use serde_json::{Value, json};
use tanmi_workspace::limits::TEXT_BYTES;

/// The maximum nesting of elements. The content of deeper elements is kept without the elements.
const MAX_DEPTH: usize = 40;

/// Returns the beginning of a text that is rendered, at most [`TEXT_BYTES`] bytes in whole lines. A longer
/// text cannot be written through Tanmi; the page shows the rest as plain text, because the tree takes many
/// times its size.
pub fn rendered_part(text: &str) -> &str {
    let part = tanmi_base::text::prefix(text, TEXT_BYTES);
    match part.rfind('\n') {
        Some(end) if part.len() < text.len() => &part[..=end],
        _ => part,
    }
}

pub fn render(text: &str) -> Value {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut open: Vec<Vec<Value>> = vec![Vec::new()];
    let mut skipped = 0;
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Start(_) if open.len() > MAX_DEPTH => skipped += 1,
            Event::Start(tag) => open.push(element(&tag)),
            Event::End(_) if skipped > 0 => skipped -= 1,
            Event::End(_) => {
                if let Some(done) = open.pop() {
                    append(&mut open, Value::Array(done));
                }
            }
            // HTML is shown as text.
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                append(&mut open, json!(&*text))
            }
            Event::Code(code) => append(&mut open, json!(["code", &*code])),
            Event::SoftBreak => append(&mut open, json!("\n")),
            Event::HardBreak => append(&mut open, json!(["br"])),
            Event::Rule => append(&mut open, json!(["hr"])),
            Event::TaskListMarker(done) => append(&mut open, json!(if done { "☑ " } else { "☐ " })),
            Event::FootnoteReference(name) => append(&mut open, json!(format!("[{name}]"))),
            Event::InlineMath(text) | Event::DisplayMath(text) => append(&mut open, json!(&*text)),
        }
    }
    Value::Array(open.swap_remove(0))
}

fn append(open: &mut [Vec<Value>], value: Value) {
    if let Some(last) = open.last_mut() {
        last.push(value);
    }
}

fn element(tag: &Tag<'_>) -> Vec<Value> {
    match tag {
        Tag::Paragraph => vec![json!("p")],
        Tag::Heading { level, .. } => vec![json!(heading(*level))],
        Tag::BlockQuote(_) => vec![json!("blockquote")],
        Tag::CodeBlock(CodeBlockKind::Fenced(language)) if !language.is_empty() => {
            vec![json!("pre"), json!({"title": &**language})]
        }
        Tag::CodeBlock(_) => vec![json!("pre")],
        Tag::List(Some(first)) => vec![json!("ol"), json!({"start": first})],
        Tag::List(None) => vec![json!("ul")],
        Tag::Item => vec![json!("li")],
        Tag::Table(_) => vec![json!("table")],
        Tag::TableHead => vec![json!("thead")],
        Tag::TableRow => vec![json!("tr")],
        Tag::TableCell => vec![json!("td")],
        Tag::Emphasis => vec![json!("em")],
        Tag::Strong => vec![json!("strong")],
        Tag::Strikethrough => vec![json!("del")],
        Tag::Link { dest_url, .. } => match is_safe(dest_url) {
            true => vec![json!("a"), json!({"href": &**dest_url})],
            false => vec![json!("span"), json!({"title": &**dest_url})],
        },
        // The page loads no images, so an image is shown as its description.
        Tag::Image { dest_url, .. } => vec![json!("span"), json!({"title": &**dest_url})],
        _ => vec![json!("div")],
    }
}

fn heading(level: HeadingLevel) -> &'static str {
    // `h1` and `h2` are headings of the page itself.
    match level {
        HeadingLevel::H1 => "h3",
        HeadingLevel::H2 => "h4",
        HeadingLevel::H3 => "h5",
        _ => "h6",
    }
}

/// Returns whether a link may be opened: web pages and mail, but not `javascript:`, `data:`, `file:` or paths of this
/// server.
fn is_safe(url: &str) -> bool {
    let url = url.trim().to_ascii_lowercase();
    ["http://", "https://", "mailto:"].iter().any(|scheme| url.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn render_markdown_returns_element_tree() {
        for (text, tree) in [
            ("a *b* `c`", json!([["p", "a ", ["em", "b"], " ", ["code", "c"]]])),
            ("# T\n- x\n- y", json!([["h3", "T"], ["ul", ["li", "x"], ["li", "y"]]])),
            ("[x](https://a.example)", json!([["p", ["a", {"href": "https://a.example"}, "x"]]])),
            ("3. x", json!([["ol", {"start": 3}, ["li", "x"]]])),
        ] {
            assert_eq!(render(text), tree, "{text}");
        }
    }

    #[test]
    fn render_hostile_markdown_returns_harmless_elements() {
        for text in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](data:text/html,<script>1</script>)",
            "![x](http://elsewhere.example/pixel.png)",
            "[x](/api/v1/workspaces)",
            "<a href=\"javascript:1\">x</a>",
        ] {
            let tree = render(text);
            assert!(is_harmless(&tree), "{text}: {tree}");
        }
        let deep = format!("{} deep", "> ".repeat(5000));
        let tree = render(&deep);
        assert!(is_harmless(&tree) && depth(&tree) <= MAX_DEPTH + 2, "{}", depth(&tree));
        assert!(tree.to_string().contains("deep"));
    }

    #[test]
    fn rendered_part_long_text_ends_with_a_whole_line() {
        assert_eq!(rendered_part("a\nb"), "a\nb");
        let long = "line\n".repeat(TEXT_BYTES);
        let part = rendered_part(&long);
        assert!(part.len() <= TEXT_BYTES && part.len() > TEXT_BYTES - 5 && part.ends_with('\n'));
        assert_eq!(rendered_part(&"任".repeat(TEXT_BYTES)).len(), TEXT_BYTES - TEXT_BYTES % 3);
    }

    /// The tags that `dom.js` builds; it drops all others.
    const ALLOWED_TAGS: &[&str] = &[
        "p",
        "h3",
        "h4",
        "h5",
        "h6",
        "blockquote",
        "pre",
        "ol",
        "ul",
        "li",
        "table",
        "thead",
        "tr",
        "td",
        "em",
        "strong",
        "del",
        "a",
        "span",
        "div",
        "code",
        "br",
        "hr",
    ];

    fn depth(tree: &Value) -> usize {
        tree.as_array().map_or(0, |parts| 1 + parts.iter().map(depth).max().unwrap_or(0))
    }

    /// Returns whether every tag is allowed and no element has an attribute that opens or loads anything.
    fn is_harmless(tree: &Value) -> bool {
        let parts = tree.as_array().cloned().unwrap_or_default();
        parts.iter().all(|part| match part {
            Value::Array(element) => {
                let name = element.first().and_then(Value::as_str).unwrap_or_default();
                ALLOWED_TAGS.contains(&name) && is_harmless(&Value::Array(element[1..].to_vec()))
            }
            Value::Object(attributes) => {
                attributes.keys().all(|key| ["title", "start"].contains(&key.as_str()))
            }
            _ => true,
        })
    }
}
