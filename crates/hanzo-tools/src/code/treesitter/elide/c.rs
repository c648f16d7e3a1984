//! Parts of a declaration of C or C++ that say nothing about what it defines: parameters, arguments of templates, what a class is
//! derived from. They are most of a header, and what a grammar finds hardest to tell from expressions.

use std::borrow::Cow;
use std::ops::Range;

use super::rules::{begins_declaration, find_word, first_word, last_word};
use super::{is_blank, is_word};

/// The arguments of a template are looked for no further than this.
const MAX_ARGUMENTS: usize = 2048;
/// What stands before a block is looked at no further back than this.
const MAX_HEADER: usize = 1024;

/// Whether what is in brackets behind `before` are parameters, so that it is a function with them and without. `T x(1, 2);` is a
/// variable, and would be a function without.
pub(super) fn are_parameters(before: &[u8], inside: &[u8]) -> bool {
    let before = before.trim_ascii_end();
    let can_have = match before.last() {
        // `f<int>(int a)`, `int (*f)(int a)` and `bool operator==(T a)`.
        Some(b'>' | b')' | b'=' | b'<' | b'!' | b'+' | b'-' | b'*' | b'/' | b'&' | b'|' | b'%' | b'~') => {
            true
        }
        Some(byte) if is_word(*byte) => !matches!(
            last_word(before),
            b"decltype"
                | b"alignas"
                | b"_Alignas"
                | b"__attribute__"
                | b"__declspec"
                | b"noexcept"
                | b"requires"
                | b"explicit"
                | b"static_assert"
                | b"_Static_assert"
                | b"sizeof"
                | b"typeof"
                | b"__typeof__"
                | b"throw"
                | b"asm"
                | b"__asm__"
                | b"defined"
        ),
        _ => false,
    };
    can_have && declare_something(inside)
}

/// Whether a text has a type with a name or a mark behind it, as only parameters have.
fn declare_something(inside: &[u8]) -> bool {
    let inside = inside.trim_ascii();
    // `(*f)` is a name in brackets, and a string may have any words in it.
    if inside.first().is_none_or(|byte| !is_word(*byte) || byte.is_ascii_digit())
        || memchr::memchr(b'"', inside).is_some()
    {
        return false;
    }
    let mut rest = inside;
    loop {
        let word = first_word(rest);
        let behind = rest[word.len()..].trim_ascii_start();
        let Some(next) = behind.first() else { return false };
        let is_apart = behind.len() < rest.len() - word.len();
        if !word.is_empty() && !word[0].is_ascii_digit() {
            if is_apart && is_word(*next) && !next.is_ascii_digit() {
                return true;
            }
            // `T&, T*` have no names.
            let mark = behind.iter().position(|byte| !matches!(byte, b'*' | b'&')).unwrap_or(behind.len());
            let last = behind[mark..].trim_ascii_start().first();
            if mark > 0 && last.is_none_or(|byte| *byte == b',') {
                return true;
            }
        }
        let passed = usize::from(word.is_empty() || !is_word(*next));
        rest = &behind[passed..];
        if rest.is_empty() {
            return false;
        }
    }
}

/// How long the arguments of a template are that `text` begins with, brackets included; else how much was looked at.
pub(super) fn arguments(text: &[u8]) -> Result<usize, usize> {
    let (mut depth, mut round) = (0_usize, 0_usize);
    let text = &text[..text.len().min(MAX_ARGUMENTS)];
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'(' => round += 1,
            b')' if round > 0 => round -= 1,
            b'<' if round == 0 => depth += 1,
            // `->`, and `=>` of a script.
            b'>' if round == 0 && matches!(text[at - 1], b'-' | b'=') => {}
            b'>' if round == 0 && text.get(at + 1) == Some(&b'=') => return Err(at),
            b'>' if round == 0 => {
                depth -= 1;
                if depth == 0 {
                    return Ok(at + 1);
                }
            }
            b'/' => {
                let comment = comment(&text[at..]);
                if comment == 0 {
                    return Err(at);
                }
                at += comment;
                continue;
            }
            byte if is_word(*byte) || b"<> \n\t\r:,*&.[]=!|+-?".contains(byte) => {}
            _ => return Err(at),
        }
        at += 1;
    }
    Err(text.len())
}

/// How long the comment is that `text` begins with.
fn comment(text: &[u8]) -> usize {
    let end = match text {
        [b'/', b'/', rest @ ..] => memchr::memchr(b'\n', rest).map(|end| end + 2),
        [b'/', b'*', rest @ ..] => memchr::memmem::find(rest, b"*/").map(|end| end + 4),
        _ => return 0,
    };
    end.unwrap_or(text.len())
}

/// What follows blanks and comments, as far as it is worth looking.
pub(super) fn behind_comments(text: &[u8]) -> &[u8] {
    let mut rest = text[..text.len().min(MAX_ARGUMENTS)].trim_ascii_start();
    loop {
        match comment(rest) {
            0 => return rest,
            length => rest = rest[length..].trim_ascii_start(),
        }
    }
}

/// `template <…>` before a declaration, as far as it need not be parsed, behind the word `template`.
pub(super) fn template(behind: &[u8]) -> Option<usize> {
    let blank = behind.len() - behind.trim_ascii_start().len();
    if behind.get(blank) != Some(&b'<') {
        return None;
    }
    let end = blank + arguments(&behind[blank..]).ok()?;
    let next = behind[end..].trim_ascii_start();
    // Those stand in a template only.
    (!matches!(first_word(next), b"concept" | b"requires")).then_some(end)
}

/// What of a header, which a block follows, need not be parsed: what a class is derived from, and how a constructor begins.
pub(super) fn inheritance(header: &[u8], is_function: bool) -> Option<Range<usize>> {
    let from = header.len().saturating_sub(MAX_HEADER);
    let text = &header[from..];
    let from_keyword = if is_function {
        memchr::memchr(b')', text)?
    } else {
        let keywords = [b"class".as_slice(), b"struct", b"enum"];
        keywords.iter().filter_map(|keyword| find_word(text, keyword)).min()?
    };
    let mut round = 0_usize;
    let mut at = from_keyword + usize::from(is_function);
    while let Some(byte) = text.get(at) {
        match byte {
            b'(' | b'[' => round += 1,
            b')' | b']' => round = round.checked_sub(1)?,
            b':' if text.get(at + 1) == Some(&b':') => at += 1,
            b':' if round == 0 => return Some(from + at..header.len()),
            _ => {}
        }
        at += 1;
    }
    None
}

/// How much of a line that begins with `#` and defines a macro says what it is called, with its parameters.
pub(super) fn macro_head(line: &[u8]) -> usize {
    let Some(define) = find_word(line, b"define") else { return line.len() };
    let name = define + b"define".len();
    let blank = line[name..].len() - line[name..].trim_ascii_start().len();
    let end = name + blank + first_word(&line[name + blank..]).len();
    match line.get(end) {
        Some(b'(') => memchr::memchr(b')', &line[end..]).map_or(line.len(), |length| end + length + 1),
        _ => end,
    }
}

/// Whether a text is nothing but a macro, such as `BEGIN_NAMESPACE`.
pub(super) fn is_macro(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    text.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
}

/// How much belongs to `public:` and the like behind the word.
pub(super) fn access(word: &[u8], behind: &[u8]) -> Option<usize> {
    if !matches!(word, b"public" | b"private" | b"protected") {
        return None;
    }
    let blank = behind.len() - behind.trim_ascii_start().len();
    (behind.get(blank) == Some(&b':') && behind.get(blank + 1) != Some(&b':')).then_some(blank + 1)
}

/// Where a macro begins that ends a header, when what it makes is a declaration of its own or says something about one, and so
/// is nothing a grammar knows. `inside` is what is in its brackets, `behind` what follows them.
pub(super) fn macro_call(header: &[u8], inside: &[u8], behind: &[u8]) -> Option<usize> {
    let header = header.trim_ascii_end();
    let name = last_word(header);
    let start = header.len() - name.len();
    let before = header[..start].trim_ascii();
    let next = behind_comments(behind);
    if matches!(
        name,
        b"__attribute__" | b"__attribute" | b"__declspec" | b"alignas" | b"_Alignas" | b"__asm__"
    ) {
        return Some(start);
    }
    if !(name.len() >= 4 && is_macro(name) && name.contains(&b'_')) {
        // `static define_number(5, "five");`
        let is_alone = matches!(before, b"" | b"static" | b"const" | b"inline");
        let has_value = inside.iter().enumerate().any(|(at, byte)| {
            *byte == b'"' || byte.is_ascii_digit() && (at == 0 || !is_word(inside[at - 1]))
        });
        let is_call = is_alone && !name.is_empty() && has_value && next.starts_with(b";");
        return (is_call && !declare_something(inside))
            .then(|| header.len() - header.trim_ascii_start().len());
    }
    // `void f() LOCKS_EXCLUDED(mutex);`
    let words = [b"const".as_slice(), b"noexcept", b"override", b"final"];
    let declarator = words.iter().find_map(|word| before.strip_suffix(*word)).unwrap_or(before);
    if declarator.trim_ascii_end().ends_with(b")") {
        return Some(start);
    }
    let is_alone = before.iter().all(|byte| byte.is_ascii_whitespace() || is_macro(&[*byte]));
    let is_line = memchr::memchr(b'\n', &behind[..behind.len().min(256)])
        .is_some_and(|end| comment(behind[..end].trim_ascii()) > 0 || is_blank(&behind[..end]));
    let begins = match next.first() {
        None => true,
        Some(b';') => !inside.is_empty() && !declare_something(inside),
        Some(byte) => (is_word(*byte) || b"~}#".contains(byte)) && (is_line || begins_declaration(behind)),
    };
    (is_alone && begins).then_some(start)
}

/// What a declaration or a name of an enumeration is set to, and what to parse instead.
pub(super) fn value(text: &[u8], is_list: bool) -> Option<(Range<usize>, &'static [u8])> {
    /// Something shorter is parsed as quickly.
    const LEAST: usize = 6;
    let mut round = 0_i32;
    let mut equals = None;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => round += 1,
            b')' | b']' | b'}' => round -= 1,
            // Another name may follow.
            b',' if round == 0 && equals.is_some() && !is_list => return None,
            b'=' if round == 0 && equals.is_none() => equals = Some(at),
            _ => {}
        }
    }
    let equals = equals?;
    let rest = &text[equals + 1..];
    let is_operator = rest.first() == Some(&b'=')
        || text[..equals].last().is_some_and(|byte| b"=!<>+-*/%&|^".contains(byte))
        || text[..equals].trim_ascii_end().ends_with(b"operator");
    if is_operator || rest.len() < LEAST || matches!(rest.trim_ascii(), b"default" | b"delete") {
        return None;
    }
    if is_list {
        return Some((equals..text.len(), b""));
    }
    let is_alias = find_word(&text[..equals], b"using").is_some();
    Some((equals + 1..text.len(), if is_alias { b"int" } else { b"0" }))
}

/// A text without its comments.
pub(super) fn without_comments(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memmem::find(text, b"//").is_none() && memchr::memmem::find(text, b"/*").is_none() {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'/', rest) {
        let length = comment(&rest[at..]);
        plain.extend_from_slice(&rest[..at + usize::from(length == 0)]);
        rest = &rest[at + length.max(1)..];
    }
    plain.extend_from_slice(rest);
    Cow::Owned(plain)
}
