//! Whether the server is who it says: its name and its chain are verified, or there is no connection.

use std::io;

use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// The roots of RDS and of its proxies; `certificates/README.md` says where they are from.
const RDS_ROOTS: &[u8] = include_bytes!("../../certificates/rds.pem");

/// No encryption.
pub(super) fn disable(options: PgConnectOptions) -> PgConnectOptions {
    options.ssl_mode(PgSslMode::Disable)
}

/// Encryption, and a server that proves its name to the roots of RDS or to those in the file `root`.
pub(super) fn verify(options: PgConnectOptions, root: Option<&str>) -> io::Result<PgConnectOptions> {
    let roots = root.map_or_else(|| Ok(RDS_ROOTS.to_vec()), std::fs::read)?;
    Ok(options.ssl_mode(PgSslMode::VerifyFull).ssl_root_cert_from_pem(roots))
}
