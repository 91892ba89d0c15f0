//! Where PostgreSQL is and how a function proves who it is: read here, used by [`crate::database`].

use std::fmt;

use super::{Faults, Reader, environment};

/// PostgreSQL's own.
const PORT: u16 = 5432;

/// Where PostgreSQL is, and how much of it a sandbox may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    /// Where it is and who asks.
    pub access: Access,
    /// `DATABASE_CONNECTIONS_MAX`; at least 1.
    pub connections_max: u32,
    /// `DATABASE_TLS`.
    pub tls: Tls,
    /// `DATABASE_POOLER`.
    pub pooler: Pooler,
}

/// Where PostgreSQL is and who asks.
#[derive(Clone, PartialEq, Eq)]
pub enum Access {
    /// `DATABASE_URL`. Holds a password, so it is never shown.
    Url(String),
    /// `DATABASE_SECRET_ARN`: a secret in the shape of RDS. What is `Some` here wins over what it says.
    Secret {
        /// The secret.
        arn: String,
        /// `DATABASE_HOST`.
        host: Option<String>,
        /// `DATABASE_PORT`.
        port: Option<u16>,
        /// `DATABASE_NAME`.
        name: Option<String>,
    },
    /// `DATABASE_IAM_USER`: the function's role logs in as that user, without a password.
    Iam {
        /// The user.
        user: String,
        /// `DATABASE_HOST`, as the certificate and the token name it.
        host: String,
        /// `DATABASE_PORT`, 5432 if not set.
        port: u16,
        /// `DATABASE_NAME`.
        name: String,
    },
}

/// What is known about who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// What `DATABASE_URL` says; the default there.
    AsUrl,
    /// Nothing is encrypted: a server on this machine.
    Disable,
    /// Encrypted, and the server proves its name to the roots of RDS or, for a server of one's own, to
    /// those in the file `DATABASE_TLS_ROOT`.
    VerifyFull {
        /// A PEM file.
        root: Option<String>,
    },
}

/// What stands between the function and PostgreSQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooler {
    /// Nothing that forgets: a session keeps its settings.
    #[default]
    None,
    /// A pooler that gives out a connection for each transaction. Nothing is set for the session.
    Transaction,
}

impl Database {
    /// Reads the environment.
    ///
    /// # Errors
    ///
    /// [`Faults`]: the function must not start.
    pub fn from_env() -> Result<Self, Faults> {
        let mut reader = Reader::new(environment);
        let database = reader.database();
        reader.finish(database)
    }
}

impl<L: Fn(&str) -> Option<String>> Reader<L> {
    pub(super) fn database(&mut self) -> Option<Database> {
        let access = self.access();
        let tls = self.tls(matches!(access, Some(Access::Url(_)) | None));
        let pooler = self.pooler();
        let connections_max = self.positive("DATABASE_CONNECTIONS_MAX");
        Some(Database { access: access?, connections_max: connections_max?, tls: tls?, pooler: pooler? })
    }

    fn access(&mut self) -> Option<Access> {
        let ways = ["DATABASE_URL", "DATABASE_SECRET_ARN", "DATABASE_IAM_USER"];
        let [url, secret, user] = ways.map(|name| self.optional(name));
        match (url, secret, user) {
            (Some(url), None, None) => Some(Access::Url(url)),
            (None, Some(arn), None) => {
                let port = self.optional("DATABASE_PORT").map(|_| self.parsed("DATABASE_PORT"));
                let (host, name) = (self.optional("DATABASE_HOST"), self.optional("DATABASE_NAME"));
                Some(Access::Secret { arn, host, port: port.flatten(), name })
            }
            (None, None, Some(user)) => {
                let (host, name) = (self.text("DATABASE_HOST"), self.text("DATABASE_NAME"));
                let port = self.parsed_or("DATABASE_PORT", PORT);
                Some(Access::Iam { user, host: host?, port: port?, name: name? })
            }
            (None, None, None) => {
                self.faults.push(format!("none of {} is set", ways.join(", ")));
                None
            }
            _ => {
                self.faults.push(format!("more than one of {} is set", ways.join(", ")));
                None
            }
        }
    }

    fn tls(&mut self, by_url: bool) -> Option<Tls> {
        let root = self.optional("DATABASE_TLS_ROOT");
        match self.optional("DATABASE_TLS").as_deref() {
            None if by_url => Some(Tls::AsUrl),
            None | Some("verify-full") => Some(Tls::VerifyFull { root }),
            Some("disable") => Some(Tls::Disable),
            Some(_) => {
                self.faults.push("DATABASE_TLS is neither verify-full nor disable".to_owned());
                None
            }
        }
    }

    fn pooler(&mut self) -> Option<Pooler> {
        match self.optional("DATABASE_POOLER").as_deref() {
            None | Some("none") => Some(Pooler::None),
            Some("transaction") => Some(Pooler::Transaction),
            Some(_) => {
                self.faults.push("DATABASE_POOLER is neither none nor transaction".to_owned());
                None
            }
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(_) => f.write_str("Url(…)"),
            Self::Secret { arn, .. } => f.debug_struct("Secret").field("arn", arn).finish_non_exhaustive(),
            Self::Iam { user, host, .. } => {
                f.debug_struct("Iam").field("user", user).field("host", host).finish_non_exhaustive()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Database, Faults> {
        let mut reader = Reader::new(|name: &str| {
            let all = variables.iter().chain(&[("DATABASE_CONNECTIONS_MAX", "2")]);
            all.clone().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        let database = reader.database();
        reader.finish(database)
    }

    #[test]
    fn secret_and_iam_are_verified_unless_told_otherwise() {
        let secret = read(&[("DATABASE_SECRET_ARN", "arn:secret"), ("DATABASE_PORT", "6432")]).unwrap();
        let iam =
            [("DATABASE_IAM_USER", "relay"), ("DATABASE_HOST", "db.example"), ("DATABASE_NAME", "tailcar")];
        let access = Access::Secret { arn: "arn:secret".into(), host: None, port: Some(6432), name: None };

        assert_eq!((secret.access, secret.tls), (access, Tls::VerifyFull { root: None }));
        assert_eq!(read(&iam).unwrap().tls, Tls::VerifyFull { root: None });
        assert_eq!(read(&[&iam[..], &[("DATABASE_TLS", "disable")]].concat()).unwrap().tls, Tls::Disable);
        assert_eq!(read(&[("DATABASE_URL", "postgres://h/d")]).unwrap().tls, Tls::AsUrl);
    }

    #[test]
    fn settings_that_leave_a_doubt_are_refused_each_by_its_name() {
        let faults = |variables: &[_]| read(variables).unwrap_err().0;

        assert_eq!(
            faults(&[("DATABASE_URL", "postgres://h/d"), ("DATABASE_IAM_USER", "relay")]),
            ["more than one of DATABASE_URL, DATABASE_SECRET_ARN, DATABASE_IAM_USER is set"]
        );
        assert_eq!(
            faults(&[("DATABASE_IAM_USER", "relay"), ("DATABASE_POOLER", "session"), ("DATABASE_TLS", "no")]),
            [
                "DATABASE_HOST is not set",
                "DATABASE_NAME is not set",
                "DATABASE_TLS is neither verify-full nor disable",
                "DATABASE_POOLER is neither none nor transaction",
            ]
        );
    }
}
