//! The language of normal and visual mode: which keys make a command. This is the state machine that waits for the second
//! key of `dd`, the motion after an operator, the character after `f`; it knows nothing of the text.

use super::super::cell::Words;
use super::super::key::{Key, KeyCode, Modifiers};
use super::super::registers::Registers;

/// Counts above this are cut: nobody means them, and `p` would fill the memory.
const MOST: u32 = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Delete,
    Change,
    Yank,
    ShiftRight,
    ShiftLeft,
    Lower,
    Upper,
    SwapCase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

impl Direction {
    pub fn reversed(self) -> Self {
        match self {
            Self::Forward => Self::Backward,
            Self::Backward => Self::Forward,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Landing {
    /// On the character (`f`).
    On,
    /// Before it (`t`).
    Before,
}

/// A search for a character in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Find {
    pub target: char,
    pub direction: Direction,
    pub landing: Landing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Motion {
    Left,
    Right,
    /// Backspace: left, and on to the line before.
    LeftOverLines,
    /// Space: right, and on to the next line.
    RightOverLines,
    Up,
    Down,
    NextWord(Words),
    PreviousWord(Words),
    WordEnd(Words),
    PreviousWordEnd(Words),
    LineStart,
    FirstNonblank,
    LineEnd,
    LastNonblank,
    Column,
    /// `gg`, or the line that the count names.
    FirstLine,
    /// `G`, or the line that the count names.
    LastLine,
    /// `_`: down count - 1 lines, to the first character that is no blank.
    ThisLine,
    NextLine,
    PreviousLine,
    Find(Find),
    FindAgain,
    FindBack,
    Matching,
    Paragraph(Direction),
}

/// Whether a text object includes what surrounds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Inner,
    Around,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Object {
    Word(Words),
    Quote(char),
    Block { open: char, close: char },
    Paragraph,
}

/// What a selection is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Characters,
    Lines,
}

/// The size of a selection, so that `.` can take as much again from where the cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    pub shape: Shape,
    pub lines: usize,
    /// Terminal columns of the last line; none when the selection went to the line's end.
    pub columns: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Motion(Motion),
    Object(Extent, Object),
    /// The operator doubled: whole lines.
    Lines,
    /// The selection of visual mode; `Some` takes whole lines whatever it is made of.
    Selection(Option<Shape>),
    /// As much as an earlier selection.
    Area(Area),
}

/// Where typing begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Before,
    After,
    LineStart,
    LineEnd,
    Below,
    Above,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joint {
    Space,
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Move(Motion),
    /// In visual mode: the selection becomes the object.
    Select(Extent, Object),
    Operate(Operator, Target),
    Enter(Entry),
    Put(Side),
    Replace(char),
    ReplaceWithBreak,
    SwapCaseHere,
    Join(Joint),
    Undo,
    Redo,
    Repeat,
    Visual(Shape),
    Reselect,
    SwapEnds,
    CommandLine,
    Search,
    Submit,
    Escape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Command {
    pub register: Option<char>,
    pub count: Option<u32>,
    pub action: Action,
}

/// What the next key is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Wait {
    #[default]
    Command,
    Register,
    G,
    Find(Direction, Landing),
    Replace,
    Object(Extent),
}

/// The keys so far of a command that is not complete.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending {
    register: Option<char>,
    counts: [Option<u32>; 2],
    operator: Option<Operator>,
    wait: Wait,
    pub keys: Vec<Key>,
}

/// Where the keys are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    Normal,
    Visual,
}

/// What became of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fed {
    More,
    Complete(Command),
    /// It begins or continues nothing; what was pending is dropped.
    Refused,
    /// Escape while something was pending.
    Dropped,
    /// Not a key of this language, and nothing was pending.
    Foreign,
}

impl Pending {
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn has_operator(&self) -> bool {
        self.operator.is_some()
    }

    pub fn feed(&mut self, key: Key, reading: Reading) -> Fed {
        self.keys.push(key);
        let fed = self.read(key, reading);
        if fed != Fed::More {
            *self = Self::default();
        }
        fed
    }

    fn read(&mut self, key: Key, reading: Reading) -> Fed {
        match self.wait {
            Wait::Command => self.read_command(key, reading),
            _ if key.code == KeyCode::Escape || key == Key::ctrl('c') => Fed::Dropped,
            Wait::Register => match key.typed() {
                Some(name) if Registers::is_name(name) => {
                    self.register = Some(name);
                    self.wait_for(Wait::Command)
                }
                _ => Fed::Refused,
            },
            Wait::Find(direction, landing) => match typed_or_tab(key) {
                Some(target) => self.motion(Motion::Find(Find { target, direction, landing })),
                None => Fed::Refused,
            },
            Wait::Replace => match typed_or_tab(key) {
                Some(c) => self.complete(Action::Replace(c)),
                None if key.code == KeyCode::Enter => self.complete(Action::ReplaceWithBreak),
                None => Fed::Refused,
            },
            Wait::Object(extent) => match key.typed().and_then(object) {
                Some(object) => self.object(extent, object),
                None => Fed::Refused,
            },
            Wait::G => self.read_after_g(key, reading),
        }
    }

    fn read_command(&mut self, key: Key, reading: Reading) -> Fed {
        if key.code == KeyCode::Escape {
            // Alone it still has a meaning in visual mode, whatever was counted before it.
            let alone = self.operator.is_none();
            return if alone { self.complete(Action::Escape) } else { Fed::Dropped };
        }
        if key == Key::ctrl('c') && self.keys.len() > 1 {
            return Fed::Dropped;
        }
        if key == Key::ctrl('r') && self.operator.is_none() && reading == Reading::Normal {
            return self.complete(Action::Redo);
        }
        if let Some(motion) = named_motion(key) {
            return self.motion(motion);
        }
        if key == Key::new(KeyCode::Enter) {
            return self.complete(Action::Submit);
        }
        if key == Key::new(KeyCode::Delete) {
            return self.read_command(Key::char('x'), reading);
        }
        let Some(typed) = key.typed() else {
            return if self.keys.len() > 1 { Fed::Refused } else { Fed::Foreign };
        };
        let slot = usize::from(self.operator.is_some());
        if let Some(digit) = typed.to_digit(10).filter(|digit| *digit != 0 || self.counts[slot].is_some()) {
            let count = self.counts[slot].unwrap_or(0).saturating_mul(10).saturating_add(digit);
            self.counts[slot] = Some(count.min(MOST));
            return Fed::More;
        }
        if let Some(motion) = motion(typed) {
            return self.motion(motion);
        }
        match typed {
            'g' => self.wait_for(Wait::G),
            'f' => self.wait_for(Wait::Find(Direction::Forward, Landing::On)),
            't' => self.wait_for(Wait::Find(Direction::Forward, Landing::Before)),
            'F' => self.wait_for(Wait::Find(Direction::Backward, Landing::On)),
            'T' => self.wait_for(Wait::Find(Direction::Backward, Landing::Before)),
            '"' => self.wait_for(Wait::Register),
            ':' => self.complete(Action::CommandLine),
            'd' => self.operator(Operator::Delete, reading),
            'c' => self.operator(Operator::Change, reading),
            'y' => self.operator(Operator::Yank, reading),
            '>' => self.operator(Operator::ShiftRight, reading),
            '<' => self.operator(Operator::ShiftLeft, reading),
            'i' if self.takes_object(reading) => self.wait_for(Wait::Object(Extent::Inner)),
            'a' if self.takes_object(reading) => self.wait_for(Wait::Object(Extent::Around)),
            '~' if self.operator == Some(Operator::SwapCase) => self.operate(Target::Lines),
            'u' if self.operator == Some(Operator::Lower) => self.operate(Target::Lines),
            'U' if self.operator == Some(Operator::Upper) => self.operate(Target::Lines),
            _ if self.operator.is_some() => Fed::Refused,
            'r' => self.wait_for(Wait::Replace),
            _ => match reading {
                Reading::Normal => self.read_normal(typed),
                Reading::Visual => self.read_visual(typed),
            },
        }
    }

    fn read_normal(&mut self, typed: char) -> Fed {
        use Operator::{Change, Delete, Yank};
        let action = match typed {
            'i' => Action::Enter(Entry::Before),
            'a' => Action::Enter(Entry::After),
            'I' => Action::Enter(Entry::LineStart),
            'A' => Action::Enter(Entry::LineEnd),
            'o' => Action::Enter(Entry::Below),
            'O' => Action::Enter(Entry::Above),
            'x' => Action::Operate(Delete, Target::Motion(Motion::Right)),
            'X' => Action::Operate(Delete, Target::Motion(Motion::Left)),
            'D' => Action::Operate(Delete, Target::Motion(Motion::LineEnd)),
            'C' => Action::Operate(Change, Target::Motion(Motion::LineEnd)),
            's' => Action::Operate(Change, Target::Motion(Motion::Right)),
            'S' => Action::Operate(Change, Target::Lines),
            'Y' => Action::Operate(Yank, Target::Lines),
            'p' => Action::Put(Side::After),
            'P' => Action::Put(Side::Before),
            'J' => Action::Join(Joint::Space),
            '~' => Action::SwapCaseHere,
            'u' => Action::Undo,
            '.' => Action::Repeat,
            'v' => Action::Visual(Shape::Characters),
            'V' => Action::Visual(Shape::Lines),
            '/' | '?' => Action::Search,
            _ => return Fed::Refused,
        };
        self.complete(action)
    }

    fn read_visual(&mut self, typed: char) -> Fed {
        use Operator::{Change, Delete, Lower, SwapCase, Upper, Yank};
        let lines = Target::Selection(Some(Shape::Lines));
        let selection = Target::Selection(None);
        let action = match typed {
            'x' => Action::Operate(Delete, selection),
            's' => Action::Operate(Change, selection),
            'D' | 'X' => Action::Operate(Delete, lines),
            'C' | 'S' | 'R' => Action::Operate(Change, lines),
            'Y' => Action::Operate(Yank, lines),
            'u' => Action::Operate(Lower, selection),
            'U' => Action::Operate(Upper, selection),
            '~' => Action::Operate(SwapCase, selection),
            'p' => Action::Put(Side::After),
            'P' => Action::Put(Side::Before),
            'J' => Action::Join(Joint::Space),
            'o' | 'O' => Action::SwapEnds,
            'v' => Action::Visual(Shape::Characters),
            'V' => Action::Visual(Shape::Lines),
            _ => return Fed::Refused,
        };
        self.complete(action)
    }

    fn read_after_g(&mut self, key: Key, reading: Reading) -> Fed {
        match key.typed() {
            Some('g') => self.motion(Motion::FirstLine),
            Some('e') => self.motion(Motion::PreviousWordEnd(Words::Small)),
            Some('E') => self.motion(Motion::PreviousWordEnd(Words::Big)),
            Some('_') => self.motion(Motion::LastNonblank),
            Some('u') => self.operator(Operator::Lower, reading),
            Some('U') => self.operator(Operator::Upper, reading),
            Some('~') => self.operator(Operator::SwapCase, reading),
            Some('J') if self.operator.is_none() => self.complete(Action::Join(Joint::Nothing)),
            Some('v') if self.operator.is_none() => self.complete(Action::Reselect),
            _ => Fed::Refused,
        }
    }

    fn takes_object(&self, reading: Reading) -> bool {
        self.operator.is_some() || reading == Reading::Visual
    }

    fn wait_for(&mut self, wait: Wait) -> Fed {
        self.wait = wait;
        Fed::More
    }

    fn operator(&mut self, operator: Operator, reading: Reading) -> Fed {
        match self.operator {
            _ if reading == Reading::Visual => {
                self.complete(Action::Operate(operator, Target::Selection(None)))
            }
            None => {
                self.operator = Some(operator);
                self.wait_for(Wait::Command)
            }
            Some(waiting) if waiting == operator => self.operate(Target::Lines),
            Some(_) => Fed::Refused,
        }
    }

    fn motion(&self, motion: Motion) -> Fed {
        match self.operator {
            None => self.complete(Action::Move(motion)),
            Some(_) => self.operate(Target::Motion(motion)),
        }
    }

    fn object(&self, extent: Extent, object: Object) -> Fed {
        match self.operator {
            None => self.complete(Action::Select(extent, object)),
            Some(_) => self.operate(Target::Object(extent, object)),
        }
    }

    fn operate(&self, target: Target) -> Fed {
        match self.operator {
            Some(operator) => self.complete(Action::Operate(operator, target)),
            None => Fed::Refused,
        }
    }

    fn complete(&self, action: Action) -> Fed {
        let count = match self.counts {
            [None, None] => None,
            [first, second] => Some(first.unwrap_or(1).saturating_mul(second.unwrap_or(1)).min(MOST)),
        };
        Fed::Complete(Command { register: self.register, count, action })
    }
}

fn typed_or_tab(key: Key) -> Option<char> {
    if key.code == KeyCode::Tab && key.modifiers == Modifiers::NONE { Some('\t') } else { key.typed() }
}

fn motion(typed: char) -> Option<Motion> {
    Some(match typed {
        'h' => Motion::Left,
        'l' => Motion::Right,
        ' ' => Motion::RightOverLines,
        'j' => Motion::Down,
        'k' => Motion::Up,
        'w' => Motion::NextWord(Words::Small),
        'W' => Motion::NextWord(Words::Big),
        'b' => Motion::PreviousWord(Words::Small),
        'B' => Motion::PreviousWord(Words::Big),
        'e' => Motion::WordEnd(Words::Small),
        'E' => Motion::WordEnd(Words::Big),
        '0' => Motion::LineStart,
        '^' => Motion::FirstNonblank,
        '$' => Motion::LineEnd,
        '|' => Motion::Column,
        'G' => Motion::LastLine,
        '_' => Motion::ThisLine,
        '+' => Motion::NextLine,
        '-' => Motion::PreviousLine,
        ';' => Motion::FindAgain,
        ',' => Motion::FindBack,
        '%' => Motion::Matching,
        '{' => Motion::Paragraph(Direction::Backward),
        '}' => Motion::Paragraph(Direction::Forward),
        _ => return None,
    })
}

fn named_motion(key: Key) -> Option<Motion> {
    if key == Key::ctrl('h') {
        return Some(Motion::LeftOverLines);
    }
    if key.modifiers != Modifiers::NONE {
        return None;
    }
    Some(match key.code {
        KeyCode::Backspace => Motion::LeftOverLines,
        KeyCode::Left => Motion::Left,
        KeyCode::Right => Motion::Right,
        KeyCode::Up => Motion::Up,
        KeyCode::Down => Motion::Down,
        KeyCode::Home => Motion::LineStart,
        KeyCode::End => Motion::LineEnd,
        _ => return None,
    })
}

fn object(typed: char) -> Option<Object> {
    Some(match typed {
        'w' => Object::Word(Words::Small),
        'W' => Object::Word(Words::Big),
        '"' | '\'' | '`' => Object::Quote(typed),
        '(' | ')' | 'b' => Object::Block { open: '(', close: ')' },
        '[' | ']' => Object::Block { open: '[', close: ']' },
        '{' | '}' | 'B' => Object::Block { open: '{', close: '}' },
        '<' | '>' => Object::Block { open: '<', close: '>' },
        'p' => Object::Paragraph,
        _ => return None,
    })
}
