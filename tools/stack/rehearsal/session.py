"""An hour of a session as input: bars with one move that must be explained, and news that explain it.

In a bucket of its own with the configuration, so that the rights to read both are exercised as well.
"""

import json
import os
from datetime import datetime, timedelta, timezone

from tools.stack import aws
from tools.stack.paths import PROJECT

BUCKET = "tailcar-inputs"
PARAMETERS = {"ConfigUri": f"s3://{BUCKET}/tailcar.toml", "SourceBucket": BUCKET}
"""What the template must be told to use it."""

OPEN = datetime(2018, 4, 4, 13, 30, tzinfo=timezone.utc)
MOVE_MINUTE = 35
"""Thirty minutes after the open, so that there is a price to compare with."""

LENGTH_MIN = 40


def put(now):
    """Lays the input into its bucket."""
    s3 = aws.client(now, "s3")
    s3.create_bucket(Bucket=BUCKET)
    for key, text in {"tailcar.toml": _config(), "aapl.csv": _bars(), "news.json": _news()}.items():
        s3.put_object(Bucket=BUCKET, Key=key, Body=text.encode())


def put_news(now, item_id):
    """Adds one more item to the feed, which is then one more job."""
    texts = _items() + [_item(item_id, f"Apple says {item_id}", 1)]
    aws.client(now, "s3").put_object(Bucket=BUCKET, Key="news.json", Body=_feed(texts).encode())


def replay(first_min, last_min):
    """The event that makes the collector close these minutes, both included, as if each had just ended."""
    return {"dataset": "us8", "from": _at(first_min), "to": _at(last_min)}


def _config():
    text = (PROJECT / "tailcar.toml").read_text()
    return text.replace('folder = "input/bars"', f's3 = "s3://{BUCKET}/"').replace('folder = "input/news"', f's3 = "s3://{BUCKET}/"')


def _bars():
    rows = [f"{_at(minute)},AAPL,{_price(minute)},{_price(minute)},{_price(minute)},{_price(minute)},100" for minute in range(LENGTH_MIN)]
    return "\n".join(["timestamp,symbol,open,high,low,close,volume", *rows])


def _price(minute):
    return "100.00" if minute < MOVE_MINUTE else "103.00"


def _news():
    return _feed(_items())


def _items():
    return [_item("1", "Apple announces a larger factory", 1), _item("2", "Apple Inc raises its forecast", 2)]


def _item(item_id, text, minute):
    return {"id": item_id, "title": text, "content_text": text, "date_published": _at(minute)}


def _feed(items):
    return json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "wire", "items": items})


def _at(minute):
    return (OPEN + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ")


if __name__ == "__main__":
    put({"aws": os.environ})
    print(PARAMETERS["ConfigUri"])
