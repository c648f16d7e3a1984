//! Web pages as Markdown for reading.
//!
//! It works on the stream of tags and not on a tree: pages are written by strangers, and a tree of a hundred thousand nested
//! elements is a stack overflow in whoever walks it. Every step takes constant time, so a page takes time in proportion to its
//! length. Nothing is escaped: who reads it is to see what the page says, and no program is to build a page from it again.

use std::cell::RefCell;

use hanzo_net::Url;
use html5ever::TokenizerResult;
use html5ever::buffer_queue::BufferQueue;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

use super::markdown_writer::{Mark, Writer};

/// A page that was converted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// Its title.
    pub(super) title: Option<String>,
    /// Its text.
    pub(super) markdown: String,
}

/// Fewer bytes than this left of a page make us look again without dropping anything.
const TOO_LITTLE: usize = 200;

/// Turns a page at `base` into Markdown. Navigation, footers and the like are left out, unless little remains.
pub(super) fn convert(html: &str, base: &Url) -> Page {
    let page = run(html, base, Surroundings::LeftOut);
    if page.markdown.len() >= TOO_LITTLE {
        return page;
    }
    let all = run(html, base, Surroundings::Kept);
    if all.markdown.len() > 2 * page.markdown.len() { all } else { page }
}

/// What becomes of navigation, footers and asides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surroundings {
    LeftOut,
    Kept,
}

fn run(html: &str, base: &Url, surroundings: Surroundings) -> Page {
    let state = State {
        writer: Writer::default(),
        base: base.clone(),
        surroundings,
        skipped: None,
        title: None,
        in_title: false,
        links: Vec::new(),
        pre: None,
        table: None,
    };
    let tokenizer = Tokenizer::new(Sink(RefCell::new(state)), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    // It stops at the end of each script for somebody to run it.
    while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
    tokenizer.end();
    tokenizer.sink.0.into_inner().finish()
}

struct Sink(RefCell<State>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut state = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(text) => state.text(&text),
            Token::TagToken(tag) => {
                if tag.kind == TagKind::StartTag {
                    state.start(&tag);
                    return raw_content(&tag);
                }
                state.end(&tag.name);
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// How the content of an element is read in which `<` begins no tag.
fn raw_content(tag: &Tag) -> TokenSinkResult<()> {
    match &*tag.name {
        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" | "noscript" => {
            TokenSinkResult::RawData(RawKind::Rawtext)
        }
        "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
        _ => TokenSinkResult::Continue,
    }
}

struct State {
    writer: Writer,
    base: Url,
    surroundings: Surroundings,
    /// The element whose content is left out, and how many of its name are open.
    skipped: Option<(String, usize)>,
    title: Option<String>,
    in_title: bool,
    links: Vec<Option<String>>,
    /// The language and text of preformatted text.
    pre: Option<(String, String)>,
    table: Option<Table>,
}

/// A table is collected: its columns are known at its end.
#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    /// The writer outside, while a cell is written.
    outside: Option<Writer>,
    /// Tables inside, which are text.
    nested: usize,
}

const MAX_COLUMNS: usize = 30;
const MAX_CELL: usize = 300;
const MAX_LINKS: usize = 16;

impl State {
    fn skips(&self, name: &str) -> bool {
        match name {
            "script" | "style" | "noscript" | "template" | "svg" | "math" | "iframe" | "object"
            | "select" | "button" | "textarea" | "noembed" | "noframes" | "dialog" | "canvas" | "video"
            | "audio" => true,
            "nav" | "footer" | "aside" => self.surroundings == Surroundings::LeftOut,
            _ => false,
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            self.title.get_or_insert_default().push_str(text);
            return;
        }
        // Between the cells of a table there is nothing but blanks.
        let between = self.table.as_ref().is_some_and(|table| table.outside.is_none());
        if self.skipped.is_some() || (between && text.trim().is_empty()) {
            return;
        }
        // Documentation has such a sign beside every heading, to link to it.
        let sign = matches!(text.trim(), "§" | "¶" | "#" | "🔗") && matches!(self.links.last(), Some(None));
        match &mut self.pre {
            Some((_, pre)) => pre.push_str(text),
            None if sign => {}
            None => self.writer.text(text),
        }
    }

    fn start(&mut self, tag: &Tag) {
        let name: &str = &tag.name;
        if let Some((skipped, open)) = &mut self.skipped {
            *open += usize::from(skipped == name && !tag.self_closing);
            return;
        }
        if self.skips(name) {
            if !tag.self_closing {
                self.skipped = Some((name.to_owned(), 1));
            }
            return;
        }
        if self.pre.is_some() {
            self.start_in_pre(name, tag);
            return;
        }
        match name {
            "title" => self.in_title = self.title.is_none(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.writer.block();
                self.writer.heading(usize::from(name.as_bytes()[1] - b'0'));
            }
            "p" | "figure" | "dl" | "details" | "fieldset" | "address" => self.writer.block(),
            "div" | "section" | "article" | "main" | "header" | "form" | "dt" | "summary" | "figcaption"
            | "caption" | "body" | "center" | "nav" | "footer" | "aside" | "legend" | "option" => {
                self.writer.line();
            }
            "dd" => {
                self.writer.line();
                self.writer.text(": ");
            }
            "br" => self.writer.hard_break(),
            "hr" => self.writer.rule(),
            "blockquote" => self.writer.open_quote(),
            "ul" | "menu" | "dir" => self.writer.open_list(None),
            "ol" => {
                let first = attribute(tag, "start").and_then(|start| start.trim().parse().ok());
                self.writer.open_list(Some(first.unwrap_or(1)));
            }
            "li" => self.writer.item(),
            "b" | "strong" => self.writer.open(Mark::Strong),
            "i" | "em" | "cite" | "dfn" => self.writer.open(Mark::Emphasis),
            "code" | "kbd" | "samp" | "tt" => self.writer.open(Mark::Code),
            "s" | "del" | "strike" => self.writer.open(Mark::Deleted),
            "a" => self.start_link(tag),
            "img" => self.image(tag),
            "pre" => self.pre = Some((language(tag), String::new())),
            "table" => self.start_table(),
            "tr" => self.start_row(),
            "td" | "th" => self.start_cell(),
            _ => {}
        }
    }

    fn start_in_pre(&mut self, name: &str, tag: &Tag) {
        if let Some((known, pre)) = &mut self.pre {
            match name {
                "br" => pre.push('\n'),
                "code" if known.is_empty() => *known = language(tag),
                _ => {}
            }
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((skipped, open)) = &mut self.skipped {
            if skipped == name {
                *open -= 1;
                if *open == 0 {
                    self.skipped = None;
                }
            }
            return;
        }
        if self.pre.is_some() && name != "pre" {
            return;
        }
        match name {
            "title" => self.in_title = false,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "p" | "figure" | "dl" | "details" | "fieldset"
            | "address" => self.writer.block(),
            "div" | "section" | "article" | "main" | "header" | "form" | "dt" | "dd" | "summary"
            | "figcaption" | "caption" | "nav" | "footer" | "aside" | "legend" | "option" => {
                self.writer.line();
            }
            "blockquote" => self.writer.close_quote(),
            "ul" | "ol" | "menu" | "dir" => self.writer.close_list(),
            "li" => self.writer.end_item(),
            "b" | "strong" => self.writer.close(Mark::Strong),
            "i" | "em" | "cite" | "dfn" => self.writer.close(Mark::Emphasis),
            "code" | "kbd" | "samp" | "tt" => self.writer.close(Mark::Code),
            "s" | "del" | "strike" => self.writer.close(Mark::Deleted),
            "a" => self.end_link(),
            "pre" => {
                if let Some((language, text)) = self.pre.take() {
                    self.writer.code_block(&language, &text);
                }
            }
            "td" | "th" => self.end_cell(),
            "table" => self.end_table(),
            _ => {}
        }
    }

    fn start_link(&mut self, tag: &Tag) {
        // A link in a link is a link that was not closed.
        if !self.links.is_empty() {
            self.end_link();
        }
        if self.links.len() >= MAX_LINKS {
            return;
        }
        let target = attribute(tag, "href").and_then(|href| self.target(href));
        if target.is_some() {
            self.writer.open(Mark::Link);
        }
        self.links.push(target);
    }

    fn end_link(&mut self) {
        if let Some(Some(target)) = self.links.pop() {
            self.writer.close_link(&target);
        }
    }

    /// Where a link leads; nowhere for those within the page and those that run a script.
    fn target(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let url = self.base.join(href).ok()?;
        matches!(url.scheme(), "http" | "https" | "mailto" | "ftp").then(|| super::shown(&url))
    }

    fn image(&mut self, tag: &Tag) {
        let about = attribute(tag, "alt").unwrap_or_default();
        let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
        let source = attribute(tag, "src").and_then(|source| self.target(source));
        if let (false, Some(source)) = (about.is_empty(), source) {
            self.writer.text(&format!("![{about}]({source})"));
        }
    }

    fn start_table(&mut self) {
        match &mut self.table {
            Some(table) => {
                table.nested += 1;
                self.writer.line();
            }
            None => self.table = Some(Table::default()),
        }
    }

    fn start_row(&mut self) {
        match &mut self.table {
            Some(table) if table.nested == 0 => {
                self.end_cell();
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => self.writer.line(),
        }
    }

    fn start_cell(&mut self) {
        self.end_cell();
        if let Some(table) = &mut self.table
            && table.nested == 0
        {
            if table.rows.is_empty() {
                table.rows.push(Vec::new());
            }
            table.outside = Some(std::mem::take(&mut self.writer));
        } else {
            self.writer.text(" ");
        }
    }

    fn end_cell(&mut self) {
        if let Some(table) = &mut self.table
            && table.nested == 0
            && let Some(outside) = table.outside.take()
        {
            // What was opened in a cell ends with it.
            self.links.clear();
            let cell = std::mem::replace(&mut self.writer, outside).finish();
            if let Some(row) = table.rows.last_mut() {
                row.push(cell);
            }
        }
    }

    fn end_table(&mut self) {
        if let Some(table) = &mut self.table
            && table.nested > 0
        {
            table.nested -= 1;
            self.writer.line();
            return;
        }
        self.end_cell();
        let Some(table) = self.table.take() else { return };
        let rows: Vec<Vec<String>> =
            table.rows.into_iter().filter(|row| row.iter().any(|cell| !cell.is_empty())).collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let plain = |cell: &String| cell.len() <= MAX_CELL && !cell.contains("\n\n") && !cell.contains("```");
        self.writer.block();
        if (2..=MAX_COLUMNS).contains(&columns) && rows.len() > 1 && rows.iter().flatten().all(plain) {
            self.writer.table(&rows, columns);
        } else {
            // A table that only puts things in their places.
            for cell in rows.iter().flatten().filter(|cell| !cell.is_empty()) {
                self.writer.lines(cell);
            }
        }
        self.writer.block();
    }

    fn finish(mut self) -> Page {
        if let Some((language, text)) = self.pre.take() {
            self.writer.code_block(&language, &text);
        }
        while !self.links.is_empty() {
            self.end_link();
        }
        if let Some(table) = &mut self.table {
            table.nested = 0;
            self.end_table();
        }
        let title = self.title.map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "));
        Page { title: title.filter(|title| !title.is_empty()), markdown: self.writer.finish() }
    }
}

fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    tag.attrs.iter().find(|attribute| &*attribute.name.local == name).map(|attribute| &*attribute.value)
}

/// The language of a piece of code, from a class such as `language-rust`.
fn language(tag: &Tag) -> String {
    let classes = attribute(tag, "class").unwrap_or_default();
    let language = classes
        .split_whitespace()
        .find_map(|class| class.strip_prefix("language-").or_else(|| class.strip_prefix("lang-")));
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-#_.".contains(c);
    language.filter(|name| name.len() <= 20 && name.chars().all(plain)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn markdown(html: &str) -> String {
        convert(html, &Url::parse("https://a.test/dir/page").unwrap()).markdown
    }

    #[test]
    fn a_page_reads_like_a_document() {
        let html = "<!doctype html><html><head><title> A\n page </title><style>p{}</style></head><body>\
            <nav><a href=/>Home</a></nav><h1>Title &amp; more</h1><p>One <b>bold</b>, <em>soft </em>word and \
            <a href='../x?y=1#z'>a link</a>.<p>Two<br>lines<ul><li>a<li>b<ol start=3><li>c</ol></ul>\
            <blockquote><p>quoted</p><p>twice</p></blockquote><pre><code class='language-rust'>fn a() {\n    b()\n}\n</code></pre>\
            <script>if (a < b) { document.write('<p>evil') }</script><hr>\
            <table><tr><th>k<th>v<tr><td>a|b<td>1</table><p>end <code>x</code></body>";
        let page = convert(html, &Url::parse("https://a.test/dir/page").unwrap());
        assert_eq!(page.title.as_deref(), Some("A page"));
        assert_eq!(
            page.markdown,
            "# Title & more\n\nOne **bold**, *soft* word and [a link](https://a.test/x?y=1#z).\n\nTwo\nlines\n\n\
             - a\n- b\n  3. c\n\n> quoted\n>\n> twice\n\n```rust\nfn a() {\n    b()\n}\n```\n\n---\n\n\
             | k | v |\n| --- | --- |\n| a\\|b | 1 |\n\nend `x`\n"
        );
    }

    #[test]
    fn links_that_lead_nowhere_are_text_and_images_have_a_description() {
        let html = "<a href='javascript:x()'>one</a> <a href='#top'>two</a> <a href=''></a><a href='/y'></a>\
            <img src='/i.png' alt='a  cat'><img src='data:x' alt='d'><img src='/n.png'>";
        assert_eq!(markdown(html), "one two ![a cat](https://a.test/i.png)\n");
    }

    #[test]
    fn the_sign_that_links_to_a_heading_is_no_part_of_it() {
        let html =
            "<h2 id=a><a href='#a'>§</a>One § two</h2><h3>Three<a href='#b'>¶</a></h3><a href='#c'>C</a>#";
        assert_eq!(markdown(html), "## One § two\n\n### Three\n\nC#\n");
    }

    #[test]
    fn a_page_that_is_all_navigation_is_still_read() {
        let html = format!("<nav>{}<p>unclosed", "<a href=/x>entry</a> ".repeat(5));
        assert!(markdown(&html).contains("entry") && markdown(&html).contains("unclosed"));
    }

    #[test]
    fn tables_that_only_place_things_are_paragraphs() {
        let html = "<table><tr><td><p>first</p><p>second</p></td></tr></table><table><tr><td>x</table>";
        assert_eq!(markdown(html), "first\n\nsecond\n\nx\n");
    }

    #[test]
    fn hostile_pages_end() {
        for piece in [
            "<div>",
            "<b>",
            "<a href=x>",
            "<ul><li>",
            "<blockquote>",
            "<table><tr><td>",
            "<pre>",
            "<!--",
            "<",
            "&",
            "</p>",
            "<ol><li>x",
            "<svg>",
        ] {
            let page = piece.repeat(60_000 / piece.len());
            let started = std::time::Instant::now();
            let text = markdown(&page);
            assert!(text.len() <= 4 * page.len(), "{piece}: {}", text.len());
            assert!(started.elapsed().as_secs() < 5, "{piece}: {:?}", started.elapsed());
        }
    }

    proptest! {
        #[test]
        fn no_page_breaks_it(parts in proptest::collection::vec(prop_oneof![
            Just("<p>".to_owned()), Just("</p>".to_owned()), Just("<ul>".to_owned()), Just("<li>".to_owned()),
            Just("</ul>".to_owned()), Just("<table>".to_owned()), Just("<tr>".to_owned()), Just("<td>".to_owned()),
            Just("</table>".to_owned()), Just("<a href=x>".to_owned()), Just("</a>".to_owned()), Just("<b>".to_owned()),
            Just("</b>".to_owned()), Just("<pre>".to_owned()), Just("</pre>".to_owned()), Just("<blockquote>".to_owned()),
            Just("</blockquote>".to_owned()), Just("<nav>".to_owned()), Just("</nav>".to_owned()), Just("<title>".to_owned()),
            Just("</title>".to_owned()), Just("<code>".to_owned()), Just("</code>".to_owned()), ".{0,12}",
        ], 0..40)) {
            markdown(&parts.concat());
        }
    }
}
