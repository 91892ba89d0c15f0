//! Where the configuration is: built in, in a file, or in S3.
//!
//! A Lambda function has 4 KB for all of its environment, too little for a list of instruments; so the
//! environment only says where the file is.

use std::path::PathBuf;

use super::{Config, Faults};

/// The file at the root of this repository, as it was when the function was built.
pub const BUNDLED: &str = include_str!("../../../../tailcar.toml");

/// Larger is no configuration but a mistake.
const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Where to read the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// [`BUNDLED`].
    Bundled,
    /// A file on this machine.
    File(PathBuf),
    /// An object.
    S3 {
        /// Its bucket.
        bucket: String,
        /// Its key.
        key: String,
    },
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Correct `TAILCAR_CONFIG`.
    #[error("TAILCAR_CONFIG is \"{0}\"; a file's path or s3://bucket/key is expected")]
    Place(String),
    /// Correct `TAILCAR_CONFIG`, or put the file there.
    #[error("the configuration file {} can not be read", .0.display())]
    File(PathBuf, #[source] std::io::Error),
    /// Put the object there, or allow the function to read it; otherwise come back later.
    #[error("the configuration s3://{bucket}/{key} can not be read")]
    S3 {
        /// The bucket asked.
        bucket: String,
        /// The key asked for.
        key: String,
        /// What S3 said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Correct the file.
    #[error("the configuration is larger than {FILE_BYTES_MAX} bytes or is not UTF-8")]
    NotText,
    /// Correct the file.
    #[error(transparent)]
    Faults(#[from] Faults),
}

impl Place {
    /// Reads the value of `TAILCAR_CONFIG`; not set or empty means [`Place::Bundled`].
    ///
    /// # Errors
    ///
    /// [`Error::Place`] for an S3 address without a bucket or a key.
    pub fn parse(value: Option<&str>) -> Result<Self, Error> {
        match value.map(str::trim) {
            None | Some("") => Ok(Self::Bundled),
            Some(text) => match text.strip_prefix("s3://") {
                None => Ok(Self::File(PathBuf::from(text))),
                Some(rest) => match rest.split_once('/') {
                    Some((bucket, key)) if !bucket.is_empty() && !key.is_empty() => {
                        Ok(Self::S3 { bucket: bucket.to_owned(), key: key.to_owned() })
                    }
                    _ => Err(Error::Place(text.to_owned())),
                },
            },
        }
    }

    /// Reads and checks the configuration there. `s3` is asked for [`Place::S3`] only.
    ///
    /// # Errors
    ///
    /// [`Error`]; the function can not start without a configuration.
    pub async fn load(&self, s3: &aws_sdk_s3::Client) -> Result<Config, Error> {
        match self {
            Self::Bundled => Ok(Config::load(BUNDLED)?),
            Self::File(path) => {
                let bytes = std::fs::read(path).map_err(|source| Error::File(path.clone(), source))?;
                Ok(Config::load(text(&bytes)?)?)
            }
            Self::S3 { bucket, key } => {
                let bytes = object(s3, bucket, key).await.map_err(|source| Error::S3 {
                    bucket: bucket.clone(),
                    key: key.clone(),
                    source,
                })?;
                Ok(Config::load(text(&bytes)?)?)
            }
        }
    }
}

async fn object(
    s3: &aws_sdk_s3::Client,
    bucket: &str,
    key: &str,
) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    let object = s3.get_object().bucket(bucket).key(key).send().await?;
    Ok(object.body.collect().await?.to_vec())
}

fn text(bytes: &[u8]) -> Result<&str, Error> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= FILE_BYTES_MAX);
    text.ok_or(Error::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_bundled_unless_one_is_named() {
        assert_eq!(Place::parse(None).unwrap(), Place::Bundled);
        assert_eq!(Place::parse(Some(" ")).unwrap(), Place::Bundled);
        assert_eq!(Place::parse(Some("my.toml")).unwrap(), Place::File("my.toml".into()));
        assert_eq!(
            Place::parse(Some("s3://bucket/a/b.toml")).unwrap(),
            Place::S3 { bucket: "bucket".to_owned(), key: "a/b.toml".to_owned() }
        );
    }

    #[test]
    fn s3_address_without_a_key_is_refused() {
        assert!(matches!(Place::parse(Some("s3://bucket")), Err(Error::Place(_))));
        assert!(matches!(Place::parse(Some("s3:///key")), Err(Error::Place(_))));
    }
}
