//! The guides of the repository as pages: Markdown as HTML, with links between them.

use std::collections::BTreeSet;

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// Returns the title of a guide: its first heading.
pub fn title(text: &'static str) -> &'static str {
    text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
}

/// Returns the first sentence of a guide.
pub fn about(text: &str) -> String {
    let paragraph = text.split("\n\n").nth(1).unwrap_or_default().replace('\n', " ");
    let sentence = paragraph.split(". ").next().unwrap_or_default().trim_end_matches('.');
    plain(sentence)
}

/// Returns Markdown without its marks.
fn plain(markdown: &str) -> String {
    let texts = Parser::new(markdown).filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.into_string()),
        Event::SoftBreak => Some(" ".to_string()),
        _ => None,
    });
    texts.collect()
}

/// Returns the headings of a guide, and the name of each in links.
pub fn headings(text: &str) -> Vec<(String, String)> {
    let mut code = false;
    let lines = text.lines().filter(|line| {
        code ^= line.starts_with("```");
        !code && line.starts_with('#')
    });
    let headings = lines.map(|line| plain(line.trim_start_matches('#').trim()));
    headings.map(|heading| (heading.clone(), slug(&heading))).collect()
}

/// Returns the sections of a guide: the name of each heading in links, and the words below it, each once.
pub fn sections(text: &str) -> Vec<(String, String)> {
    let mut code = false;
    let mut sections: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        code ^= line.starts_with("```");
        if !code && line.starts_with('#') {
            sections.push((slug(&plain(line.trim_start_matches('#').trim())), String::new()));
        } else if let Some((_, below)) = sections.last_mut() {
            below.push_str(line);
            below.push('\n');
        }
    }
    sections.into_iter().map(|(slug, below)| (slug, words(&below))).collect()
}

/// Returns the words of a text, each once; a name such as `product.created` is one.
fn words(text: &str) -> String {
    let small = text.to_lowercase();
    let all = small.split(|letter: char| !letter.is_alphanumeric() && !"_.-".contains(letter));
    let trimmed = all.map(|word| word.trim_matches(|letter: char| ".-".contains(letter)));
    let once: BTreeSet<&str> = trimmed.filter(|word| word.len() > 1).collect();
    once.into_iter().collect::<Vec<_>>().join(" ")
}

/// Gives the rows of tables that begin with such a name an id, so that links can lead to them.
pub fn with_rows(html: &str, is_name: impl Fn(&str) -> bool) -> String {
    const ROW: &str = "<tr><td><code>";
    let mut parts = html.split(ROW);
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        match part.split('<').next().filter(|name| is_name(name)) {
            Some(name) => out.push_str(&format!("<tr id=\"{name}\"><td><code>")),
            None => out.push_str(ROW),
        }
        out.push_str(part);
    }
    out
}

/// Returns the name of a heading in links, as code hosts make it.
fn slug(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(|letter: char| !letter.is_alphanumeric() && !" -".contains(letter), "");
    kept.replace(' ', "-")
}

/// Returns a guide as HTML, with examples for the server at `base`.
pub fn html(text: &str, base: &str) -> String {
    let text = text.replace("http://127.0.0.1:8080", base);
    let mut names = headings(&text).into_iter().map(|(_, slug)| slug);
    // Whether each open link leads to something that is served here.
    let mut links = Vec::new();
    let mut image = false;
    let events = Parser::new_ext(&text, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
            let id = names.next().map(CowStr::from);
            Some(Event::Start(Tag::Heading { level, id, classes, attrs }))
        }
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let target = target(&dest_url);
            links.push(target.is_some());
            target.map(|dest| Event::Start(Tag::Link { link_type, dest_url: dest.into(), title, id }))
        }
        Event::End(TagEnd::Link) => links.pop().unwrap_or(false).then_some(event),
        // Pictures are not served.
        Event::Start(Tag::Image { .. }) => {
            image = true;
            None
        }
        Event::End(TagEnd::Image) => {
            image = false;
            None
        }
        Event::Html(_) | Event::InlineHtml(_) => None,
        _ if image => None,
        event => Some(event),
    });
    let mut out = String::new();
    html::push_html(&mut out, events);
    // Columns of numbers; pages have no inline styles.
    out.replace(" style=\"text-align: ", " class=\"")
}

/// Returns where a link of a guide leads here, if it does.
fn target(link: &str) -> Option<String> {
    if link.starts_with("http") || link.starts_with('#') {
        return Some(link.to_string());
    }
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let name = file.strip_suffix(".md").filter(|name| !name.contains('/'))?;
    let heading = if heading.is_empty() { String::new() } else { format!("#{heading}") };
    Some(format!("/docs/guides/{name}{heading}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guides_link_to_each_other_and_to_their_headings() {
        let guide = "# Lists & pages\n\nSee [records](records.md#notes-and-files), [us](../SECURITY.md) and <b>more</b>.\n\n\
                     ```sh\n# no heading\ncurl http://127.0.0.1:8080/v1\n```\n\n![A picture](x.png)\n";
        let page = html(guide, "https://office.example");
        assert!(page.starts_with("<h1 id=\"lists--pages\">Lists &amp; pages</h1>"), "{page}");
        assert!(page.contains("<a href=\"/docs/guides/records#notes-and-files\">records</a>"), "{page}");
        assert!(page.contains(", us and more.") && page.contains("curl https://office.example/v1"), "{page}");
        assert!(!page.contains("<b>") && !page.contains("<img") && !page.contains("A picture"), "{page}");
        assert_eq!(headings(guide).len(), 1);
        let below = sections(guide);
        assert_eq!(below.len(), 1, "{below:?}");
        assert!(below[0].0 == "lists--pages" && below[0].1.contains(" no notes-and-files "), "{below:?}");
        let table = html("| A |\n|---|\n| `a.b` |\n| `c` |\n", "");
        let rows = with_rows(&table, |name| name == "a.b");
        assert!(
            rows.contains("<tr id=\"a.b\"><td><code>a.b</code>") && rows.contains("<tr><td><code>c</code>"),
            "{rows}"
        );
        assert_eq!((title("# Lists\n\nx"), about(guide).as_str()), ("Lists", "See records, us and more"));
    }
}
