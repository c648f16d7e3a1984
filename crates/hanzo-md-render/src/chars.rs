//! What characters do to line breaks.

/// Punctuation of Chinese and Japanese ends an address: no space stands before it.
pub(crate) fn is_full_width_stop(c: char) -> bool {
    matches!(
        c,
        '、' | '。'
            | '，'
            | '．'
            | '；'
            | '：'
            | '！'
            | '？'
            | '）'
            | '」'
            | '』'
            | '】'
            | '》'
            | '”'
            | '’'
    )
}

pub(crate) fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff01}'..='\u{ff60}' | '\u{20000}'..='\u{3fffd}')
}

/// A character that is two columns wide and never joins with its neighbours, so that no table need be asked.
pub(crate) fn is_simple_wide(c: char) -> bool {
    matches!(c, '\u{3001}'..='\u{3029}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ff01}'..='\u{ff60}')
}

/// A line does not begin with these.
pub(crate) fn sticks_to_the_left(c: char) -> bool {
    matches!(
        c,
        '、' | '。'
            | '，'
            | '．'
            | '・'
            | '；'
            | '：'
            | '！'
            | '？'
            | '）'
            | '］'
            | '｝'
            | '」'
            | '』'
            | '】'
            | '〕'
            | '〉'
            | '》'
            | '”'
            | '’'
            | '…'
            | '‥'
            | '～'
            | '〜'
            | 'ー'
            | '々'
            | '゛'
            | '゜'
            | 'ぁ'
            | 'ぃ'
            | 'ぅ'
            | 'ぇ'
            | 'ぉ'
            | 'っ'
            | 'ゃ'
            | 'ゅ'
            | 'ょ'
            | 'ゎ'
            | 'ァ'
            | 'ィ'
            | 'ゥ'
            | 'ェ'
            | 'ォ'
            | 'ッ'
            | 'ャ'
            | 'ュ'
            | 'ョ'
            | 'ヮ'
            | '％'
            | ','
            | '.'
            | ';'
            | ':'
            | '!'
            | '?'
            | ')'
            | ']'
            | '}'
            | '%'
            | '"'
            | '\''
    )
}

/// A line does not end with these.
pub(crate) fn sticks_to_the_right(c: char) -> bool {
    matches!(
        c,
        '（' | '［'
            | '｛'
            | '「'
            | '『'
            | '【'
            | '〔'
            | '〈'
            | '《'
            | '“'
            | '‘'
            | '('
            | '['
            | '{'
            | '￥'
            | '＄'
            | '$'
            | '"'
            | '\''
    )
}
