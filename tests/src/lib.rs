//! The stand on which real components are run and broken.
//!
//! Each component is a child process that believes to be in Lambda, in front of a real PostgreSQL and a
//! real SQS-protocol server. Nothing here stands in for code of the product; what stands in is AWS: the
//! runtime API, the event source mapping, the schedules, and the passing of time.
//!
//! ```text
//! components    builds the functions with fault points and finds them
//! sandbox       one function as a child process      runtime_api   what it talks to
//! mapping       queue ▸ function ▸ delete            queue         one queue and its dead letters
//! world         database, queues, bucket, settings   proxy         loses answers of PostgreSQL
//! crew          what the schedules would start      subject       jobs that behave as told
//! market        a configuration and its input files                 sqs_proxy bad weather for senders
//! plan          what a seed lets happen                         turns     what it decides for each turn
//! points        every fault point in the source      invariants    what must hold in the end
//! effects       what a market must have come to
//! ```

pub mod components;
pub mod crew;
pub mod effects;
pub mod http;
pub mod invariants;
pub mod mapping;
pub mod market;
pub mod plan;
pub mod points;
pub mod proxy;
pub mod queue;
pub mod runtime_api;
pub mod sandbox;
pub mod sqs_proxy;
pub mod subject;
pub mod turns;
pub mod world;

/// Why a scenario could not be carried out. A violated property is not an error but a finding.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// A result of the stand.
pub type Result<T> = std::result::Result<T, Error>;
