//! The screen of an X server, through the protocol itself: pictures with `GetImage`, pointer and keyboard with XTEST.

use std::time::Duration;

use x11rb::CURRENT_TIME;
use x11rb::connection::Connection as _;
use x11rb::errors::{ConnectionError, ReplyError};
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConfigureWindowAux, ConnectionExt as _, EventMask, ImageFormat, ImageOrder,
    InputFocus, StackMode, Window as WindowId,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

use super::{Picture, Region, Screen, ScreenError, Wanted, Window};

// The numbers of the core protocol's events, which XTEST takes.
const KEY_PRESS: u8 = 2;
const KEY_RELEASE: u8 = 3;
const BUTTON_PRESS: u8 = 4;
const BUTTON_RELEASE: u8 = 5;
const MOTION: u8 = 6;

const SHIFT: u32 = 0xffe1;
/// Windows that are looked at for a title: more than that is no desktop.
const MAX_WINDOWS: usize = 2000;
/// How many keys are lent to characters no key has.
const MAX_LENT: usize = 16;
/// How long programs have to notice that the keyboard has changed.
const SETTLE: Duration = Duration::from_millis(60);

struct X11 {
    connection: RustConnection,
    root: WindowId,
    width: u16,
    height: u16,
}

/// What the keys mean.
struct Keyboard {
    /// The code of the first key.
    first: u8,
    /// How many symbols a key has.
    width: u8,
    keys: Vec<Vec<u32>>,
    shift: Option<u8>,
    /// The codes of keys that mean nothing.
    spare: Vec<u8>,
}

impl Keyboard {
    /// The key for a symbol, and the shift key if it takes that.
    fn find(&self, symbol: u32) -> Option<(u8, Option<u8>)> {
        let code = |index: usize| self.first + u8::try_from(index).unwrap_or(0);
        let on = |level: usize| self.keys.iter().position(|key| key.get(level) == Some(&symbol)).map(code);
        let plain = on(0).map(|key| (key, None));
        plain.or_else(|| self.shift.and_then(|shift| on(1).map(|key| (key, Some(shift)))))
    }
}

/// Connects to the display called `name`, or to the one of the environment.
pub(super) fn open(name: Option<&str>) -> Result<Box<dyn Screen>, ScreenError> {
    if name.is_none() && std::env::var_os("DISPLAY").is_none_or(|display| display.is_empty()) {
        return Err(ScreenError::NoDisplay("no X11 display is set (DISPLAY)".to_owned()));
    }
    let (connection, number) =
        x11rb::connect(name).map_err(|error| ScreenError::NoDisplay(error.to_string()))?;
    let screen = &connection.setup().roots[number];
    let (root, width, height) = (screen.root, screen.width_in_pixels, screen.height_in_pixels);
    Ok(Box::new(X11 { connection, root, width, height }))
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands it over")]
fn lost(error: ConnectionError) -> ScreenError {
    ScreenError::Failed(error.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands it over")]
fn failed(error: ReplyError) -> ScreenError {
    ScreenError::Failed(error.to_string())
}

impl X11 {
    fn fake(&self, kind: u8, detail: u8, x: i16, y: i16) -> Result<(), ScreenError> {
        let sent = self.connection.xtest_fake_input(kind, detail, CURRENT_TIME, self.root, x, y, 0);
        sent.map_err(lost)?.check().map_err(failed)
    }

    fn need_xtest(&self) -> Result<(), ScreenError> {
        let version = self.connection.xtest_get_version(2, 2).map_err(lost)?;
        version
            .reply()
            .map(drop)
            .map_err(|_| ScreenError::Unsupported("be used by programs (no XTEST)".to_owned()))
    }

    fn key(&self, code: u8, shift: Option<u8>) -> Result<(), ScreenError> {
        if let Some(shift) = shift {
            self.fake(KEY_PRESS, shift, 0, 0)?;
        }
        self.fake(KEY_PRESS, code, 0, 0)?;
        self.fake(KEY_RELEASE, code, 0, 0)?;
        if let Some(shift) = shift {
            self.fake(KEY_RELEASE, shift, 0, 0)?;
        }
        Ok(())
    }

    fn keyboard(&self) -> Result<Keyboard, ScreenError> {
        let setup = self.connection.setup();
        let (first, count) = (setup.min_keycode, setup.max_keycode - setup.min_keycode + 1);
        let mapping = self.connection.get_keyboard_mapping(first, count).map_err(lost)?;
        let mapping = mapping.reply().map_err(failed)?;
        let width = mapping.keysyms_per_keycode.max(1);
        let keys: Vec<Vec<u32>> = mapping.keysyms.chunks(width.into()).map(<[u32]>::to_vec).collect();
        let code = |index: usize| first + u8::try_from(index).unwrap_or(0);
        let shift = keys.iter().position(|key| key.contains(&SHIFT)).map(code);
        let nothing = |(_, key): &(usize, &Vec<u32>)| key.iter().all(|symbol| *symbol == 0);
        let spare = keys.iter().enumerate().filter(nothing).map(|(index, _)| code(index));
        let spare = spare.rev().take(MAX_LENT).collect();
        Ok(Keyboard { first, width, keys, shift, spare })
    }

    /// Gives the spare keys these symbols, one each; 0 takes it back.
    fn lend(&self, keyboard: &Keyboard, symbols: &[u32]) -> Result<(), ScreenError> {
        if symbols.is_empty() {
            return Ok(());
        }
        // Programs look keys up when an event arrives, not when it is sent.
        std::thread::sleep(SETTLE);
        for (key, symbol) in keyboard.spare.iter().zip(symbols) {
            let levels = vec![*symbol; keyboard.width.into()];
            let sent = self.connection.change_keyboard_mapping(1, *key, keyboard.width, &levels);
            sent.map_err(lost)?.check().map_err(failed)?;
        }
        std::thread::sleep(SETTLE);
        Ok(())
    }

    fn type_symbols(
        &self,
        keyboard: &Keyboard,
        symbols: &[u32],
        lent: &[u32],
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), ScreenError> {
        self.lend(keyboard, lent)?;
        for symbol in symbols {
            if !go_on() {
                return Err(ScreenError::Failed("typing was ended".to_owned()));
            }
            let spare = || lent.iter().position(|other| other == symbol).map(|at| (keyboard.spare[at], None));
            match keyboard.find(*symbol).or_else(spare) {
                Some((key, shift)) => self.key(key, shift)?,
                None => return Err(ScreenError::Unsupported("type this: no key is free for it".to_owned())),
            }
        }
        Ok(())
    }

    fn atom(&self, name: &str) -> Result<u32, ScreenError> {
        let atom = self.connection.intern_atom(false, name.as_bytes()).map_err(lost)?;
        Ok(atom.reply().map_err(failed)?.atom)
    }

    /// The bytes of a window's property; none when the window is gone.
    fn property(&self, window: WindowId, name: u32) -> Result<Vec<u8>, ScreenError> {
        let value =
            self.connection.get_property(false, window, name, AtomEnum::ANY, 0, 4096).map_err(lost)?;
        Ok(value.reply().map(|reply| reply.value).unwrap_or_default())
    }

    /// All windows, those in front last.
    fn windows(&self) -> Result<Vec<WindowId>, ScreenError> {
        let mut found = vec![self.root];
        let mut next = 0;
        while next < found.len() && found.len() < MAX_WINDOWS {
            let tree = self.connection.query_tree(found[next]).map_err(lost)?;
            found.extend(tree.reply().map(|reply| reply.children).unwrap_or_default());
            next += 1;
        }
        Ok(found)
    }
}

impl Screen for X11 {
    fn capture(&self, region: Option<Region>) -> Result<Picture, ScreenError> {
        let all = Region { x: 0, y: 0, width: self.width.into(), height: self.height.into() };
        let region = region.unwrap_or(all);
        let fits = |start: u32, length: u32, most: u16| {
            length > 0 && start.checked_add(length).is_some_and(|end| end <= most.into())
        };
        if !fits(region.x, region.width, self.width) || !fits(region.y, region.height, self.height) {
            return Err(ScreenError::Invalid(format!(
                "`region` is not within the screen, which is {} by {}",
                self.width, self.height
            )));
        }
        let short = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
        let at = |number: u32| i16::try_from(number).unwrap_or(i16::MAX);
        let image = self
            .connection
            .get_image(
                ImageFormat::Z_PIXMAP,
                self.root,
                at(region.x),
                at(region.y),
                short(region.width),
                short(region.height),
                u32::MAX,
            )
            .map_err(lost)?
            .reply()
            .map_err(failed)?;
        let pixels = region.width as usize * region.height as usize;
        if image.data.len() != pixels * 4 || !matches!(image.depth, 24 | 32) {
            return Err(ScreenError::Unsupported(format!("be read at a depth of {}", image.depth)));
        }
        let order = self.connection.setup().image_byte_order;
        let rgb = image.data.as_chunks::<4>().0.iter().flat_map(|pixel| match order {
            ImageOrder::LSB_FIRST => [pixel[2], pixel[1], pixel[0]],
            _ => [pixel[1], pixel[2], pixel[3]],
        });
        Ok(Picture { width: region.width, height: region.height, rgb: rgb.collect() })
    }

    fn click(&self, x: u32, y: u32, button: u8, count: u8) -> Result<(), ScreenError> {
        self.need_xtest()?;
        if x >= self.width.into() || y >= self.height.into() {
            return Err(ScreenError::Invalid(format!(
                "{x}, {y} is not on the screen, which is {} by {}",
                self.width, self.height
            )));
        }
        let at = |number: u32| i16::try_from(number).unwrap_or(i16::MAX);
        self.fake(MOTION, 0, at(x), at(y))?;
        for _ in 0..count {
            self.fake(BUTTON_PRESS, button, 0, 0)?;
            self.fake(BUTTON_RELEASE, button, 0, 0)?;
        }
        Ok(())
    }

    fn type_text(&self, text: &str, go_on: &dyn Fn() -> bool) -> Result<(), ScreenError> {
        self.need_xtest()?;
        // All of them before the first is typed: typing cannot be taken back.
        let symbols = text.chars().map(keysym).collect::<Result<Vec<u32>, _>>()?;
        let keyboard = self.keyboard()?;
        let mut rest = symbols.as_slice();
        while !rest.is_empty() {
            // As much as there are spare keys to lend to the symbols no key has.
            let mut lent = Vec::new();
            let fits = |symbol: &u32| {
                let known = keyboard.find(*symbol).is_some() || lent.contains(symbol);
                if !known && lent.len() < keyboard.spare.len() {
                    lent.push(*symbol);
                    return true;
                }
                known
            };
            let count = rest.iter().copied().take_while(fits).count();
            let (now, later) = rest.split_at(count);
            if now.is_empty() {
                return Err(ScreenError::Unsupported("type all of this: no key is free for it".to_owned()));
            }
            let typed = self.type_symbols(&keyboard, now, &lent, go_on);
            let given_back = self.lend(&keyboard, &vec![0; lent.len()]);
            typed.and(given_back)?;
            rest = later;
        }
        Ok(())
    }

    fn focus(&self, wanted: &Wanted) -> Result<Window, ScreenError> {
        let (name, pid) = (self.atom("_NET_WM_NAME")?, self.atom("_NET_WM_PID")?);
        let mut found = None;
        for window in self.windows()? {
            let mut title = self.property(window, name)?;
            if title.is_empty() {
                title = self.property(window, AtomEnum::WM_NAME.into())?;
            }
            let title = String::from_utf8_lossy(&title).into_owned();
            let bytes = self.property(window, pid)?;
            let pid = bytes.first_chunk::<4>().map(|bytes| u32::from_ne_bytes(*bytes));
            let fits = match wanted {
                Wanted::Title(part) => title.to_lowercase().contains(&part.to_lowercase()),
                Wanted::Pid(wanted) => pid == Some(*wanted),
            };
            let visible = || {
                let attributes = self.connection.get_window_attributes(window).ok()?.reply().ok()?;
                (attributes.map_state == x11rb::protocol::xproto::MapState::VIEWABLE).then_some(())
            };
            if fits && visible().is_some() {
                found = Some((window, Window { title, pid }));
            }
        }
        let Some((window, about)) = found else {
            return Err(ScreenError::NotFound("no window that can be seen fits".to_owned()));
        };
        // A window manager is asked; where there is none it is done.
        let event =
            ClientMessageEvent::new(32, window, self.atom("_NET_ACTIVE_WINDOW")?, [2, CURRENT_TIME, 0, 0, 0]);
        let mask = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
        self.connection.send_event(false, self.root, mask, event).map_err(lost)?.check().map_err(failed)?;
        let above = ConfigureWindowAux::new().stack_mode(StackMode::ABOVE);
        self.connection.configure_window(window, &above).map_err(lost)?.check().map_err(failed)?;
        let given =
            self.connection.set_input_focus(InputFocus::PARENT, window, CURRENT_TIME).map_err(lost)?;
        given.check().map_err(failed)?;
        Ok(about)
    }
}

/// The symbol of a character on a keyboard.
fn keysym(character: char) -> Result<u32, ScreenError> {
    match character {
        '\n' | '\r' => Ok(0xff0d),
        '\t' => Ok(0xff09),
        '\u{8}' => Ok(0xff08),
        '\u{1b}' => Ok(0xff1b),
        ' '..='~' | '\u{a0}'..='\u{ff}' => Ok(character.into()),
        c if c.is_control() => Err(ScreenError::Invalid(format!("{c:?} is on no keyboard"))),
        c => Ok(0x0100_0000 + u32::from(c)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_have_symbols() {
        for (character, symbol) in
            [('a', 0x61), ('ä', 0xe4), ('\n', 0xff0d), ('€', 0x0100_20ac), ('😀', 0x0101_f600)]
        {
            assert_eq!(keysym(character), Ok(symbol), "{character}");
        }
        assert!(keysym('\u{7}').is_err());
    }

    #[test]
    fn a_display_that_is_not_there_is_said_to_be() {
        assert!(matches!(open(Some(":4242")), Err(ScreenError::NoDisplay(_))));
        assert!(matches!(open(Some("nonsense")), Err(ScreenError::NoDisplay(_))));
    }
}
