//! AWS clients that fail readably: each try and each call has a limit, so that a missing route shows as
//! an error and not as the function's timeout.

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};

/// A missing VPC endpoint hangs here.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// One try, the body of the answer included.
const TRY_TIMEOUT: Duration = Duration::from_secs(8);
/// One call with all its tries.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// Tries of one call; the SDK backs off between them.
const TRIES_MAX: u32 = 3;

/// What the clients have in common, from the environment. `AWS_ENDPOINT_URL` points to a local stack.
pub async fn load() -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .operation_attempt_timeout(TRY_TIMEOUT)
        .operation_timeout(CALL_TIMEOUT)
        .build();
    aws_config::defaults(BehaviorVersion::latest())
        .timeout_config(timeouts)
        .retry_config(RetryConfig::standard().with_max_attempts(TRIES_MAX))
        .load()
        .await
}

/// S3. With an endpoint of one's own the bucket stands in the path, since no name resolves it as a host.
#[must_use]
pub fn s3(config: &SdkConfig) -> aws_sdk_s3::Client {
    let path_style = config.endpoint_url().is_some();
    let config = aws_sdk_s3::config::Builder::from(config).force_path_style(path_style).build();
    aws_sdk_s3::Client::from_conf(config)
}

/// SQS.
#[must_use]
pub fn sqs(config: &SdkConfig) -> aws_sdk_sqs::Client {
    aws_sdk_sqs::Client::new(config)
}
