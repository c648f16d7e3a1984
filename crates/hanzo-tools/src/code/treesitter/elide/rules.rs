//! What begins a body and what defines something, language by language. When in doubt, a body is parsed.

use super::super::super::language::Language;
use super::{c, is_blank, is_word};

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

    pub(super) fn is_c(self) -> bool {
        matches!(self.language, Language::C | Language::Cpp)
    }

    pub(super) fn is_cpp(self) -> bool {
        self.language == Language::Cpp
    }

    /// Whether a block behind `header` holds the names of an enumeration.
    pub(super) fn is_enumeration(self, header: &[u8]) -> bool {
        self.is_c() && find_word(&header[header.len().saturating_sub(MAX_HEADER)..], b"enum").is_some()
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
            Language::C | Language::Cpp => c_shape(header),
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
                b"typedef" => true,
                // `using namespace a;` and `using a::b;` define nothing.
                b"using" => {
                    let name = behind.trim_ascii_start();
                    name[first_word(name).len()..].trim_ascii_start().starts_with(b"=")
                }
                b"struct" | b"union" | b"enum" | b"class" => {
                    let limit = &behind[..behind.len().min(200)];
                    let stop = |text: &[u8], marks: &[u8]| text.iter().position(|byte| marks.contains(byte));
                    stop(limit, b";{)=,*&:").is_some_and(|at| match limit[at] {
                        b'{' => true,
                        // What a class is derived from may have more in it.
                        b':' => stop(&limit[at..], b";{)=").is_none_or(|end| limit[at + end] == b'{'),
                        _ => false,
                    })
                }
                _ => false,
            },
            _ => before != b'.' && self.defines_in_script(word, behind),
        }
    }

    /// Whether a word of C or C++ is a macro that says something about the declaration it stands in, such as `SQLITE_API`. To
    /// the grammar it is a type, and the type behind it an error that may cost the rest of a class. `before` is the declaration
    /// up to the word.
    pub(super) fn is_decoration(self, before: &[u8], word: &[u8], behind: &[u8]) -> bool {
        let is_capital = word.len() >= 4 && word.contains(&b'_') && c::is_macro(word);
        let near = &behind[..behind.len().min(200)];
        self.is_c()
            && if is_capital {
                begins_declaration(near)
                    || names_class(before, behind)
                    || ends_declaration(before, behind)
                    || is_behind_type(before, near)
                    || is_blank(before) && stands_alone(behind)
            } else {
                // `__inline__`, `__vector`
                word.starts_with(b"__") && begins_declaration(near)
            }
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

fn c_shape(header: &[u8]) -> Shape {
    let header = c::without_comments(header);
    let header = header.trim_ascii();
    // `A() : a(1), b{2} {`
    let begins = !header.ends_with(b"=") && c::inheritance(header, true).is_some();
    match header.last() {
        Some(b')' | b'}') if begins => Shape::Function,
        Some(byte) if begins && (is_word(*byte) || *byte == b'>') => Shape::Inline,
        _ => function_if(is_c_body(header)),
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

/// Whether a word stands behind the parameters of a function and before its body or end, as in `void f() MY_NOEXCEPT;`.
fn ends_declaration(before: &[u8], behind: &[u8]) -> bool {
    let before = before[before.len().saturating_sub(64)..].trim_ascii_end();
    let is_behind =
        before.ends_with(b")") || matches!(last_word(before), b"const" | b"noexcept" | b"override");
    let next = behind[..behind.len().min(64)].trim_ascii_start().first();
    is_behind && next.is_some_and(|byte| matches!(byte, b'{' | b';' | b'=' | b':'))
}

/// Whether a word stands between a type and the name of a variable, as in `const Device DEVICE_REF device;`.
fn is_behind_type(before: &[u8], behind: &[u8]) -> bool {
    let before = before[before.len().saturating_sub(64)..].trim_ascii_end();
    let name = behind.trim_ascii_start();
    let next = name[first_word(name).len()..].trim_ascii_start().first();
    let is_type = match last_word(before) {
        b"" => before.ends_with(b">") || before.ends_with(b"*") || before.ends_with(b"&"),
        b"const" | b"static" | b"inline" | b"extern" | b"mutable" | b"volatile" | b"constexpr"
        | b"typedef" | b"friend" | b"virtual" | b"explicit" | b"typename" | b"class" | b"struct"
        | b"union" | b"enum" | b"return" | b"using" | b"namespace" | b"goto" | b"new" => false,
        word => word != before || !c::is_macro(word),
    };
    let is_named = name.len() < behind.len() && !first_word(name).is_empty();
    is_type && is_named && next.is_some_and(|byte| b";=[".contains(byte))
}

/// Whether what follows is a line of its own, and no function whose result a word before would be.
fn stands_alone(behind: &[u8]) -> bool {
    let rest = c::behind_comments(behind);
    let line = &behind[..memchr::memchr(b'\n', behind).unwrap_or(behind.len())];
    let is_line = is_blank(line) || c::behind_comments(line).is_empty();
    let begins =
        rest.first().is_none_or(|byte| b"#}~".contains(byte)) || is_declaration(&rest[..rest.len().min(200)]);
    is_line && begins
}

/// Whether a whole declaration follows, behind a blank: a keyword, or a type and a name.
pub(super) fn begins_declaration(text: &[u8]) -> bool {
    let rest = text.trim_ascii_start();
    rest.len() < text.len() && is_declaration(rest)
}

fn is_declaration(rest: &[u8]) -> bool {
    let first = first_word(rest);
    match first {
        // What undoes another.
        b"" => rest.starts_with(b"~"),
        b"void" | b"int" | b"char" | b"short" | b"long" | b"float" | b"double" | b"bool" | b"auto"
        | b"unsigned" | b"signed" | b"static" | b"inline" | b"extern" | b"constexpr" | b"virtual"
        | b"explicit" | b"friend" | b"template" | b"typename" | b"class" | b"struct" | b"union" | b"enum"
        | b"typedef" | b"using" | b"namespace" | b"public" | b"private" | b"protected" => true,
        b"const" | b"volatile" => begins_declaration(&rest[first.len()..]),
        _ => {
            let name = behind_type(&rest[first.len()..]);
            name.first().is_some_and(|byte| (is_word(*byte) && !byte.is_ascii_digit()) || *byte == b'~')
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

pub(super) fn first_word(text: &[u8]) -> &[u8] {
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

/// Whether what is in brackets behind `before` are parameters of a function of a script, or what it is called with, and hold
/// neither functions nor objects: it is the same function without them.
pub(super) fn are_values(before: &[u8], inside: &[u8], behind: &[u8]) -> bool {
    let is_plain = |byte: &u8| is_word(*byte) || b" \n\t\r,:?.<>|&[]'\"=!+-".contains(byte);
    if !inside.iter().all(is_plain) || memchr::memmem::find(inside, b"=>").is_some() {
        return false;
    }
    if behind[..behind.len().min(16)].trim_ascii_start().starts_with(b"=>") {
        return true;
    }
    let word = last_word(before);
    let is_name = word.first().is_some_and(|byte| !byte.is_ascii_digit());
    is_name
        && !matches!(
            word,
            b"if"
                | b"for"
                | b"while"
                | b"switch"
                | b"catch"
                | b"with"
                | b"return"
                | b"typeof"
                | b"case"
                | b"in"
                | b"of"
                | b"delete"
                | b"void"
                | b"throw"
                | b"else"
                | b"do"
                | b"yield"
                | b"await"
                | b"instanceof"
                | b"import"
                | b"extends"
                | b"keyof"
                | b"as"
                | b"is"
                | b"default"
                | b"satisfies"
                | b"async"
        )
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

pub(super) fn last_word(text: &[u8]) -> &[u8] {
    &text[text.iter().rposition(|byte| !is_word(*byte)).map_or(0, |at| at + 1)..]
}

pub(super) fn find_word(text: &[u8], word: &[u8]) -> Option<usize> {
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
