//! What an invocation asks for: a schedule asks for a sweep, a person may ask for more.

use serde::Deserialize;
use serde_json::Value;

/// What to do. All of them sweep as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Go on where the last run stopped.
    Sweep,
    /// Start an audit of the whole bucket; the following runs go on with it.
    Audit {
        /// Read every object and compare its bytes, not only its size.
        checksums: bool,
        /// Who asks, and why.
        person: Person,
    },
    /// Put this installation's marker into the bucket, whatever it says now.
    Adopt {
        /// Who decides, and why.
        person: Person,
    },
}

/// Who asks, and why. It is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// A name; not empty.
    pub who: String,
    /// A reason; not empty.
    pub why: String,
}

/// Nothing was done. Ask again, better.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request is not clear: {0}")]
pub struct Unclear(String);

#[derive(Deserialize)]
struct Fields {
    #[serde(default)]
    audit: bool,
    #[serde(default)]
    adopt: bool,
    #[serde(default)]
    checksums: bool,
    #[serde(default)]
    who: String,
    #[serde(default)]
    why: String,
}

impl Order {
    /// Reads `event`. One that asks for neither, such as a schedule's, asks for a sweep.
    ///
    /// # Errors
    ///
    /// [`Unclear`]: it asks for something, and not well.
    pub fn parse(event: &Value) -> Result<Self, Unclear> {
        if event.get("audit").is_none() && event.get("adopt").is_none() {
            return Ok(Self::Sweep);
        }
        let fields = Fields::deserialize(event).map_err(|error| Unclear(error.to_string()))?;
        let Fields { audit, adopt, checksums, who, why } = fields;
        let person = || match (who.trim(), why.trim()) {
            ("", _) | (_, "") => Err(Unclear("who asks and why must be said in `who` and `why`".to_owned())),
            (who, why) => Ok(Person { who: who.to_owned(), why: why.to_owned() }),
        };
        match (audit, adopt) {
            (true, true) => Err(Unclear("`audit` and `adopt` are two requests".to_owned())),
            (true, false) => Ok(Self::Audit { checksums, person: person()? }),
            (false, true) => Ok(Self::Adopt { person: person()? }),
            (false, false) => Ok(Self::Sweep),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn person() -> Person {
        Person { who: "ann".to_owned(), why: "new bucket".to_owned() }
    }

    #[test]
    fn schedule_asks_for_a_sweep() {
        for event in [
            json!({}),
            json!(null),
            json!({ "source": "aws.scheduler", "who": 1 }),
            json!({ "audit": false }),
        ] {
            assert_eq!(Order::parse(&event), Ok(Order::Sweep));
        }
    }

    #[test]
    fn person_asks_for_an_audit_or_an_adoption() {
        let audit = json!({ "audit": true, "checksums": true, "who": "ann", "why": " new bucket " });
        assert_eq!(Order::parse(&audit), Ok(Order::Audit { checksums: true, person: person() }));
        let adopt = json!({ "adopt": true, "who": "ann", "why": "new bucket" });
        assert_eq!(Order::parse(&adopt), Ok(Order::Adopt { person: person() }));
    }

    #[test]
    fn request_that_is_not_clear_is_refused() {
        for event in [
            json!({ "audit": true }),
            json!({ "adopt": true, "who": "ann", "why": " " }),
            json!({ "adopt": "yes", "who": "ann", "why": "new" }),
            json!({ "audit": true, "adopt": true, "who": "ann", "why": "new" }),
        ] {
            assert!(Order::parse(&event).is_err(), "{event}");
        }
    }
}
