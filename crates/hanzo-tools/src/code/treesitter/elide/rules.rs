//! What begins a body and what defines something, language by language. When in doubt, a body is parsed.

use super::super::super::language::Language;
use super::is_word;

/// What a block is, as far as what stands before it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// As what it is in.
    Plain,
    /// The body of a function whose name, if it has one, was seen as a word that defines.
    Function,
    /// The body of a function that is named by nothing but its place.
    Method,
    /// What is in it may be a symbol.
    Type,
    /// It is part of a header that goes on behind it.
    Inline,
}

/// The rules of one language.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) language: Language,
}

/// No more of what stands before a block is looked at: many blocks may share a long text.
const MAX_HEADER: usize = 512;

impl Rules {
    pub(super) fn of(language: Language) -> Option<Self> {
        matches!(
            language,
            Language::Rust
                | Language::Go
                | Language::Java
                | Language::C
                | Language::Cpp
                | Language::JavaScript
                | Language::TypeScript
                | Language::Tsx
        )
        .then_some(Self { language })
    }

    pub(super) fn is_script(self) -> bool {
        matches!(self.language, Language::JavaScript | Language::TypeScript | Language::Tsx)
    }

    fn is_typed(self) -> bool {
        matches!(self.language, Language::TypeScript | Language::Tsx)
    }

    /// Whether what ends with `]` is an attribute of Rust, and no part of a header.
    pub(super) fn is_attribute(self, text: &[u8]) -> bool {
        let mut first = text.iter().take(MAX_HEADER).skip_while(|byte| byte.is_ascii_whitespace());
        self.language == Language::Rust && first.next() == Some(&b'#')
    }

    /// What `text {` begins.
    pub(super) fn shape(self, text: &[u8]) -> Shape {
        let header = text[text.len().saturating_sub(MAX_HEADER)..].trim_ascii();
        match self.language {
            Language::Rust => function_if(has_word_before_name(header, b"fn")),
            Language::Go => go_shape(header),
            Language::Java => java_shape(header),
            Language::C | Language::Cpp => function_if(is_c_body(header)),
            _ => script_shape(header),
        }
    }

    /// Whether a word of a body may begin a definition. `before` is the byte before it, `behind` the text that follows.
    pub(super) fn defines(self, word: &[u8], before: u8, behind: &[u8]) -> bool {
        match self.language {
            Language::Rust => matches!(
                word,
                b"fn"
                    | b"struct"
                    | b"enum"
                    | b"union"
                    | b"trait"
                    | b"impl"
                    | b"mod"
                    | b"type"
                    | b"const"
                    | b"static"
                    | b"macro_rules"
            ),
            Language::Go => word == b"type" && behind.first() == Some(&b' '),
            Language::Java => matches!(
                word,
                b"class"
                    | b"interface"
                    | b"enum"
                    | b"record"
                    | b"public"
                    | b"protected"
                    | b"private"
                    | b"void"
                    | b"Override"
            ),
            Language::C | Language::Cpp => match word {
                b"typedef" | b"using" | b"namespace" | b"template" => true,
                b"struct" | b"union" | b"enum" | b"class" => {
                    let limit = &behind[..behind.len().min(200)];
                    let stop = limit.iter().position(|byte| b";{)=,*&".contains(byte));
                    stop.is_some_and(|at| limit[at] == b'{')
                }
                _ => false,
            },
            _ => before != b'.' && self.defines_in_script(word, behind),
        }
    }

    /// Whether a word of C or C++ is a macro that says something about the declaration it stands before, such as `SQLITE_API`.
    /// To the grammar it is a type, and the type behind it an error that may cost the rest of a class.
    pub(super) fn is_decoration(self, before: &[u8], word: &[u8], behind: &[u8]) -> bool {
        let is_capital = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
        matches!(self.language, Language::C | Language::Cpp)
            && word.len() >= 4
            && word.contains(&b'_')
            && word.iter().all(is_capital)
            && (begins_declaration(&behind[..behind.len().min(200)]) || names_class(before, behind))
    }

    fn defines_in_script(self, word: &[u8], behind: &[u8]) -> bool {
        let next = behind.trim_ascii_start();
        let names = || next.first().is_some_and(|byte| is_word(*byte)) && next.len() < behind.len();
        match word {
            b"class" => names() || next.starts_with(b"{"),
            b"function" => {
                let next = next.strip_prefix(b"*").unwrap_or(next).trim_ascii_start();
                next.first().is_some_and(|byte| is_word(*byte))
            }
            b"interface" | b"enum" | b"type" | b"namespace" | b"module" | b"abstract" | b"declare"
            | b"private" | b"public" | b"protected" | b"readonly" => self.is_typed() && names(),
            _ => false,
        }
    }
}

fn function_if(is_body: bool) -> Shape {
    if is_body { Shape::Function } else { Shape::Plain }
}

fn go_shape(header: &[u8]) -> Shape {
    // Go ends a statement with its line: a header begins with the last line that begins a function.
    let line = memchr::memmem::rfind(header, b"\nfunc").map_or(header, |at| &header[at + 1..]);
    let is_function = line.starts_with(b"func ") || memchr::memmem::find(line, b"func(").is_some();
    match is_function {
        true if line.ends_with(b"interface") || line.ends_with(b"struct") => Shape::Inline,
        true => Shape::Function,
        false => Shape::Plain,
    }
}

fn java_shape(header: &[u8]) -> Shape {
    let head = match find_word(header, b"throws") {
        Some(at) => header[..at].trim_ascii_end(),
        None => header,
    };
    if !head.ends_with(b")") {
        return Shape::Plain;
    }
    // An object of a class without a name, and a record with its fields.
    if find_word(header, b"new").is_some() || find_word(header, b"record").is_some() {
        return Shape::Type;
    }
    match opening(head).map(|open| last_word(head[..open].trim_ascii_end())) {
        Some(b"if" | b"for" | b"while" | b"switch" | b"catch" | b"synchronized" | b"try") => Shape::Plain,
        // A method, or what a constant of an enumeration has of its own.
        _ => Shape::Method,
    }
}

fn is_c_body(header: &[u8]) -> bool {
    let mut head = header;
    if head.ends_with(b"=") {
        return !head.ends_with(b"==");
    }
    if find_word(header, b"namespace").is_some() {
        return false;
    }
    // `auto f() -> T`
    if let Some(arrow) = memchr::memmem::rfind(head, b"->") {
        head = head[..arrow].trim_ascii_end();
    }
    while let Some(shorter) = [b"const".as_slice(), b"noexcept", b"override", b"final", b"&&", b"&"]
        .iter()
        .find_map(|word| head.strip_suffix(*word))
    {
        head = shorter.trim_ascii_end();
    }
    head.ends_with(b")") && !is_attribute(head)
}

/// Whether the name of a class follows what stands behind `class`, as in `class MY_API Name {`.
fn names_class(before: &[u8], behind: &[u8]) -> bool {
    let before = before[before.len().saturating_sub(16)..].trim_ascii_end();
    let is_class = matches!(last_word(before), b"class" | b"struct" | b"union" | b"enum");
    let behind = &behind[..behind.len().min(200)];
    let name = behind.trim_ascii_start();
    let rest = name[first_word(name).len()..].trim_ascii_start();
    let is_named = !first_word(name).is_empty() && name.len() < behind.len();
    // `struct NAME variable;` is no class with a macro.
    is_class && is_named && (rest.starts_with(b"{") || rest.starts_with(b"final") || rest.starts_with(b":"))
}

/// Whether a whole declaration follows, behind a blank: a keyword, or a type and a name.
fn begins_declaration(text: &[u8]) -> bool {
    let rest = text.trim_ascii_start();
    let first = first_word(rest);
    if first.is_empty() || rest.len() == text.len() {
        return false;
    }
    match first {
        b"void" | b"int" | b"char" | b"short" | b"long" | b"float" | b"double" | b"bool" | b"auto"
        | b"unsigned" | b"signed" | b"static" | b"inline" | b"extern" | b"constexpr" | b"virtual"
        | b"explicit" | b"friend" | b"template" | b"typename" | b"class" | b"struct" | b"union" | b"enum"
        | b"typedef" | b"using" | b"namespace" | b"public" | b"private" | b"protected" => true,
        b"const" | b"volatile" => begins_declaration(&rest[first.len()..]),
        _ => {
            let name = behind_type(&rest[first.len()..]);
            name.first().is_some_and(|byte| is_word(*byte) && !byte.is_ascii_digit())
        }
    }
}

/// What follows a type of which the first word was seen: `::b<c> *` is passed over.
fn behind_type(text: &[u8]) -> &[u8] {
    let mut rest = text.trim_ascii_start();
    loop {
        rest = if let Some(path) = rest.strip_prefix(b"::") {
            let path = path.trim_ascii_start();
            &path[first_word(path).len()..]
        } else if rest.starts_with(b"<") {
            let mut depth = 0_u32;
            let end = rest.iter().position(|byte| {
                match byte {
                    b'<' => depth += 1,
                    b'>' => depth -= 1,
                    _ => {}
                }
                depth == 0
            });
            match end {
                Some(end) => &rest[end + 1..],
                None => return b"",
            }
        } else if let [b'*' | b'&', inner @ ..] = rest {
            inner
        } else {
            return rest;
        }
        .trim_ascii_start();
    }
}

fn first_word(text: &[u8]) -> &[u8] {
    &text[..text.iter().position(|byte| !is_word(*byte)).unwrap_or(text.len())]
}

/// `__attribute__((…))` and the like end with a bracket and begin no body.
fn is_attribute(head: &[u8]) -> bool {
    let Some(open) = opening(head) else { return true };
    let before = head[..open].trim_ascii_end();
    let name = last_word(before);
    // `[](int x)` and `f<int>(int x)` have no name there either.
    let has_none = name.is_empty() && !before.ends_with(b"]") && !before.ends_with(b">");
    has_none && !ends_like_operator(before)
        || name.starts_with(b"__")
        || matches!(name, b"alignas" | b"_Alignas" | b"decltype" | b"requires")
}

/// `operator==(…)` has no name before its bracket, and is a function.
fn ends_like_operator(text: &[u8]) -> bool {
    memchr::memmem::rfind(text, b"operator").is_some_and(|at| text.len() - at <= 16)
}

fn script_shape(header: &[u8]) -> Shape {
    if header.ends_with(b"=>") {
        // A type of functions has no body; what it says about their results are fields.
        let is_type = header.starts_with(b"type ")
            || [b"\ntype ".as_slice(), b"export type "]
                .iter()
                .any(|word| memchr::memmem::find(header, word).is_some());
        return function_if(!is_type);
    }
    // A type that is written out, of a parameter or a result, or a value in an object.
    if header.ends_with(b":") || header.ends_with(b"|") {
        return Shape::Inline;
    }
    let head = without_result_type(header);
    if !head.ends_with(b")") {
        return Shape::Plain;
    }
    // `class A extends mixin(B)`
    if find_word(header, b"class").is_some() && find_word(header, b"extends").is_some() {
        return Shape::Type;
    }
    let Some(open) = opening(head) else { return Shape::Plain };
    let mut before = head[..open].trim_ascii_end();
    // `f<T>(…)`
    if before.ends_with(b">") {
        let angle = memchr::memrchr(b'<', before).unwrap_or(0);
        before = before[..angle].trim_ascii_end();
    }
    match last_word(before) {
        b"" if before.ends_with(b"*") || before.ends_with(b"]") => Shape::Method,
        b"" | b"if" | b"for" | b"while" | b"switch" | b"catch" | b"with" | b"await" => Shape::Plain,
        b"function" => Shape::Function,
        // `function name(…)` was seen as a word that defines; what a class or an object holds was not.
        _ => Shape::Method,
    }
}

/// `f(): T` without `: T`.
fn without_result_type(header: &[u8]) -> &[u8] {
    let mut at = header.len();
    while let Some(found) = memchr::memrchr(b':', &header[..at]) {
        let head = header[..found].trim_ascii_end();
        let is_type = |byte: &u8| is_word(*byte) || b" <>[]{}|&.,;:\"'?()\n\t=-".contains(byte);
        if !header[found + 1..].iter().all(is_type) {
            return header;
        }
        if head.ends_with(b")") {
            return head;
        }
        at = found;
    }
    header
}

/// The bracket that the last byte of `text` closes.
fn opening(text: &[u8]) -> Option<usize> {
    let mut depth = 0_i32;
    text.iter().rposition(|byte| {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

fn last_word(text: &[u8]) -> &[u8] {
    &text[text.iter().rposition(|byte| !is_word(*byte)).map_or(0, |at| at + 1)..]
}

fn find_word(text: &[u8], word: &[u8]) -> Option<usize> {
    memchr::memmem::find_iter(text, word).find(|at| {
        let before = at.checked_sub(1).is_none_or(|before| !is_word(text[before]));
        before && text.get(at + word.len()).is_none_or(|byte| !is_word(*byte))
    })
}

fn has_word_before_name(text: &[u8], word: &[u8]) -> bool {
    find_word(text, word).is_some_and(|at| {
        let rest = text[at + word.len()..].trim_ascii_start();
        rest.first().is_some_and(|byte| is_word(*byte))
    })
}
