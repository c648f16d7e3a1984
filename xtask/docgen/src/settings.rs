//! placeholder until hanzo-config lands
use crate::Documents;
pub fn add(_: &mut Documents) -> anyhow::Result<()> {
    Ok(())
}
