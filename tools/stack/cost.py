"""What a month costs at some rates of jobs, from counted quantities and list prices; docs/cost.md holds the result.

Prices are those of us-east-1 in 2026, without the free tier. The database is not in it: it is yours, and
costs the same without this product.
"""

from decimal import Decimal as D
from decimal import ROUND_HALF_UP

MINUTES = 30 * 24 * 60
RATES = (1, 100, 10_000)
"""Jobs a minute."""

PRICE = {
    "GB-second of Lambda, x86_64": D("0.0000166667"),
    "million requests to Lambda": D("0.20"),
    "million requests to SQS": D("0.40"),
    "thousand writes to S3": D("0.005"),
    "thousand reads from S3": D("0.0004"),
    "GB-month of S3": D("0.023"),
    "GB of logs taken in": D("0.50"),
    "metric-month": D("0.30"),
    "alarm-month": D("0.10"),
    "dashboard-month": D("3.00"),
    "million schedule invocations": D("1.00"),
}

# What one stack does, whatever the rate. Memory as in the template.
LINGER_GB_S = 75 * D("0.25") * MINUTES
SCHEDULED_GB_S = (D("1.0") + D("0.1") + D("0.3")) * D("0.5") * MINUTES  # collector, reconciler, monitor, each minute
HOURLY_GB_S = 2 * D("2.0") * D("0.5") * MINUTES / 60  # sweeper and janitor, each hour
SCHEDULED_RUNS = 4 * MINUTES + 2 * MINUTES // 60
POLLS = 6 * 5 * 3 * MINUTES  # six mappings, five pollers each, a long poll of 20 s
METRICS = 115
ALARMS = 20
RUN_LOG_KB = 2

# What one job adds.
JOB_S = D("0.1")
JOB_GB = D("0.5")
JOB_LOG_KB = 1
SQS_CALLS = 3  # send, receive, delete; each carries a batch
NEWS_SHARE = D("0.5")
ARTIFACT_KB = 20


def batch(jobs_a_minute):
    """Messages in a call: a quiet queue gives them out one by one, a busy one by ten."""
    return min(10, max(1, jobs_a_minute // 60))


def month(jobs_a_minute):
    """Dollars by line."""
    jobs = jobs_a_minute * MINUTES
    batches = D(jobs) / batch(jobs_a_minute)
    lambda_gb_s = LINGER_GB_S + SCHEDULED_GB_S + HOURLY_GB_S
    artifacts = MINUTES + NEWS_SHARE * jobs
    logs_gb = (SCHEDULED_RUNS * RUN_LOG_KB + jobs * JOB_LOG_KB) / D(1_000_000)
    return {
        "relay, lingering": LINGER_GB_S * PRICE["GB-second of Lambda, x86_64"],
        "the other scheduled functions": (lambda_gb_s - LINGER_GB_S) * PRICE["GB-second of Lambda, x86_64"],
        "consumers": jobs * JOB_S * JOB_GB * PRICE["GB-second of Lambda, x86_64"],
        "Lambda requests": (SCHEDULED_RUNS + batches) * PRICE["million requests to Lambda"] / 1_000_000,
        "Scheduler": SCHEDULED_RUNS * PRICE["million schedule invocations"] / 1_000_000,
        "SQS": (POLLS + SQS_CALLS * batches) * PRICE["million requests to SQS"] / 1_000_000,
        "S3 writes and reads": artifacts * (PRICE["thousand writes to S3"] + PRICE["thousand reads from S3"]) / 1000,
        "S3, a month's artifacts": artifacts * ARTIFACT_KB / 1_000_000 * PRICE["GB-month of S3"],
        "logs": logs_gb * PRICE["GB of logs taken in"],
        "metrics": METRICS * PRICE["metric-month"],
        "alarms and dashboard": ALARMS * PRICE["alarm-month"] + PRICE["dashboard-month"],
    }


def table():
    """The table of docs/cost.md."""
    months = [month(rate) for rate in RATES]
    lines = ["| $ a month at | " + " | ".join(f"{rate:,} a minute" for rate in RATES) + " |", "|---" * 4 + "|"]
    lines += [f"| {name} | " + " | ".join(_dollars(each[name]) for each in months) + " |" for name in months[0]]
    lines.append("| **together** | " + " | ".join(f"**{_dollars(sum(each.values()))}**" for each in months) + " |")
    per_million = [sum(each.values()) / (rate * MINUTES) * 1_000_000 for rate, each in zip(RATES, months)]
    lines.append("| a million jobs | " + " | ".join(map(_dollars, per_million)) + " |")
    return "\n".join(lines)


def _dollars(amount):
    return f"{amount.quantize(D('0.01'), ROUND_HALF_UP):,}"


if __name__ == "__main__":
    print(table())
