//! What the settings, the flags and the environment say about how the face looks and what it asks of the terminal.

use hanzo_config::{Notifications, ScreenKind, TerminalSettings, ThemeName};
use hanzo_tui::terminal::{Extent, Modes, Mouse, Reflow};
use hanzo_tui::theme::{Background, Theme};
use hanzo_tui::{Follow, Notify, TerminalSetup};

use crate::cli::FaceArgs;

/// The theme, and what is asked of the terminal.
pub(super) fn of(settings: &TerminalSettings, args: &FaceArgs) -> (Theme, TerminalSetup) {
    resolve(settings, args, |name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

fn resolve(
    settings: &TerminalSettings,
    args: &FaceArgs,
    variable: impl Fn(&str) -> Option<String>,
) -> (Theme, TerminalSetup) {
    let (theme, background) = theme(settings.theme, args, &variable);
    let alternate = args.alternate_screen || settings.screen == ScreenKind::Alternate;
    let modes = Modes {
        extent: if alternate { Extent::Whole } else { Extent::Inline },
        mouse: if args.mouse || settings.mouse { Mouse::Ours } else { Mouse::Terminals },
    };
    let notify = match settings.notifications {
        Notifications::Bell => Notify::Bell,
        Notifications::Off => Notify::Never,
        _ => Notify::Desktop,
    };
    // What this terminal does with lines that no longer fit. tmux breaks them anew, whatever it runs in.
    let linux = variable("TERM").is_some_and(|term| term == "linux");
    let cuts = variable("TMUX").is_none() && (linux || variable("XTERM_VERSION").is_some());
    let reflow = if cuts { Reflow::Cuts } else { Reflow::Wraps };
    (theme, TerminalSetup { modes, background, notify, reflow })
}

/// The theme, and whether it follows what the terminal says of its background.
fn theme(name: ThemeName, args: &FaceArgs, variable: impl Fn(&str) -> Option<String>) -> (Theme, Follow) {
    let chosen = match name {
        _ if args.screen_reader => Some(Theme::words()),
        ThemeName::Words => Some(Theme::words()),
        // Whoever wants no colours wants none whatever the theme.
        _ if variable("NO_COLOR").is_some() => Some(Theme::plain()),
        ThemeName::Ansi => Some(Theme::ansi()),
        ThemeName::Dark => Some(Theme::dark()),
        ThemeName::Light => Some(Theme::light()),
        ThemeName::ColourBlind => Some(Theme::colour_blind()),
        ThemeName::Plain => Some(Theme::plain()),
        _ => None,
    };
    if let Some(theme) = chosen {
        return (theme, Follow::Stays);
    }
    let background = variable("COLORFGBG").map(|value| Background::from_colorfgbg(&value));
    (Theme::for_background(background.unwrap_or_default()), Follow::Follows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> FaceArgs {
        FaceArgs {
            prompt: None,
            continue_newest: false,
            resume: None,
            screen_reader: false,
            alternate_screen: false,
            mouse: false,
        }
    }

    fn resolved(
        settings: &TerminalSettings,
        args: &FaceArgs,
        set: &[(&str, &str)],
    ) -> (&'static str, TerminalSetup) {
        let find =
            |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let (theme, setup) = resolve(settings, args, find);
        (theme.name, setup)
    }

    #[test]
    fn the_theme_suits_the_terminal_unless_one_was_chosen() {
        let mut settings = TerminalSettings::default();
        let (name, setup) = resolved(&settings, &args(), &[]);
        assert_eq!((name, setup.background), ("ansi", Follow::Follows));
        assert_eq!(resolved(&settings, &args(), &[("COLORFGBG", "0;15")]).0, "light");
        assert_eq!(resolved(&settings, &args(), &[("NO_COLOR", "1")]).0, "plain");
        settings.theme = ThemeName::Dark;
        let (name, setup) = resolved(&settings, &args(), &[("COLORFGBG", "0;15")]);
        assert_eq!((name, setup.background), ("dark", Follow::Stays));
        assert_eq!(resolved(&settings, &args(), &[("NO_COLOR", "1")]).0, "plain");
        let reader = FaceArgs { screen_reader: true, ..args() };
        assert_eq!(resolved(&settings, &reader, &[("NO_COLOR", "1")]).0, "words");
    }

    #[test]
    fn flags_and_settings_ask_for_the_alternate_screen_and_the_mouse() {
        let mut settings = TerminalSettings::default();
        assert_eq!(resolved(&settings, &args(), &[]).1.modes, Modes::default());
        let both = Modes { extent: Extent::Whole, mouse: Mouse::Ours };
        let given = FaceArgs { alternate_screen: true, mouse: true, ..args() };
        assert_eq!(resolved(&settings, &given, &[]).1.modes, both);
        settings.screen = ScreenKind::Alternate;
        settings.mouse = true;
        assert_eq!(resolved(&settings, &args(), &[]).1.modes, both);
    }

    #[test]
    fn terminals_that_cut_are_known() {
        let settings = TerminalSettings::default();
        let reflow = |set: &[(&str, &str)]| resolved(&settings, &args(), set).1.reflow;
        assert_eq!(reflow(&[("TERM", "xterm-256color")]), Reflow::Wraps);
        assert_eq!(reflow(&[("TERM", "linux")]), Reflow::Cuts);
        assert_eq!(reflow(&[("XTERM_VERSION", "XTerm(390)")]), Reflow::Cuts);
        assert_eq!(reflow(&[("XTERM_VERSION", "XTerm(390)"), ("TMUX", "x")]), Reflow::Wraps);
    }
}
