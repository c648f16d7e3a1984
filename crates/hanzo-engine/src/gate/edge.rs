//! Where a call ends up, seen from the sandbox: inside, or at which part of its edge.

use hanzo_permissions::EdgeKind;
use hanzo_protocol::item::Taint;
use hanzo_protocol::tool::{Effect, Place, Reach, ReachConfinement};

/// The part of the sandbox's edge a call crosses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Edge {
    /// None: workspace writes and jailed commands.
    Inside,
    /// It reaches the network, where that is closed.
    Network,
    /// It changes files outside.
    OutsideWrite,
    /// It changes what is remembered beyond the thread.
    Memory,
    /// It acts on the screen.
    Screen,
    /// It asks to run outside altogether.
    Unconfined,
}

/// Which edge a call crosses; of several the one that weighs most.
pub(super) fn edge(reach: &Reach, network_is_open: bool) -> Edge {
    let outside = reach.paths.iter().any(|path| path.place == Place::Outside);
    match reach.effect {
        _ if reach.confinement == ReachConfinement::Outside => Edge::Unconfined,
        Effect::Memory => Edge::Memory,
        // A program's own files are the jail's business, and what only looks changes nothing.
        Effect::Write | Effect::Network | Effect::Screen if outside => Edge::OutsideWrite,
        Effect::Screen => Edge::Screen,
        Effect::Network if !network_is_open => Edge::Network,
        Effect::Network | Effect::Read | Effect::Write | Effect::Execute => Edge::Inside,
    }
}

impl Edge {
    /// The edge as the rule for headless threads knows it; `None` where nothing but a person will do.
    pub(super) fn kind(self) -> Option<EdgeKind> {
        match self {
            Self::Inside => Some(EdgeKind::Inside),
            Self::Network => Some(EdgeKind::Network),
            Self::OutsideWrite => Some(EdgeKind::OutsideWrite),
            Self::Memory => Some(EdgeKind::Memory),
            Self::Screen | Self::Unconfined => None,
        }
    }
}

/// Whether untrusted content is about and the call could carry out what it asks for: postures and grants were not given with that in
/// mind. The network counts also where it is open.
pub(super) fn is_exposed(taint: Option<Taint>, reach: &Reach, edge: Edge) -> bool {
    taint.is_some() && (edge != Edge::Inside || reach.effect == Effect::Network)
}

#[cfg(test)]
mod tests {
    use hanzo_protocol::tool::ReachedPath;

    use super::*;

    fn reach(effect: Effect, place: Option<Place>) -> Reach {
        let path = |place| ReachedPath { given: "x".into(), real: "/x".into(), place };
        Reach { paths: place.map(path).into_iter().collect(), ..Reach::new("a.b", effect) }
    }

    #[test]
    fn every_effect_has_its_edge() {
        use Effect::{Execute, Memory, Network, Read, Screen, Write};
        let outside = Some(Place::Outside);
        for (effect, place, open, expected) in [
            (Read, None, false, Edge::Inside),
            (Read, outside, false, Edge::Inside),
            (Write, Some(Place::Inside), false, Edge::Inside),
            (Write, outside, true, Edge::OutsideWrite),
            (Execute, outside, false, Edge::Inside),
            (Network, None, false, Edge::Network),
            (Network, None, true, Edge::Inside),
            (Network, outside, true, Edge::OutsideWrite),
            (Screen, None, true, Edge::Screen),
            (Memory, None, true, Edge::Memory),
        ] {
            assert_eq!(edge(&reach(effect, place), open), expected, "{effect:?} {place:?} {open}");
            let unconfined = Reach { confinement: ReachConfinement::Outside, ..reach(effect, place) };
            assert_eq!(edge(&unconfined, open), Edge::Unconfined);
        }
    }

    #[test]
    fn untrusted_content_exposes_what_could_carry_it_out() {
        let inside = reach(Effect::Write, None);
        assert!(!is_exposed(Some(Taint::Mcp), &inside, Edge::Inside));
        let network = reach(Effect::Network, None);
        assert!(is_exposed(Some(Taint::Mcp), &network, edge(&network, true)));
        assert!(!is_exposed(None, &network, edge(&network, true)));
    }
}
