"""Tells every event of a stream as one line of JSON: PyPI's `sseclient-py`, from an id where one is given."""

import json
import sys

import requests
import sseclient


def pieces(answer):
    """What has come, as soon as it has come: requests itself waits for a whole block."""
    while piece := answer.raw.read1(65536):
        yield piece


headers = {"Accept": "text/event-stream"}
if len(sys.argv) > 2:
    headers["Last-Event-ID"] = sys.argv[2]
answer = requests.get(sys.argv[1], stream=True, headers=headers, timeout=None)
for it in sseclient.SSEClient(pieces(answer)).events():
    # This client hands out the digits as text.
    retry = int(it.retry) if it.retry else None
    line = {"kind": "event", "name": it.event, "id": it.id, "data": it.data, "retry": retry}
    print(json.dumps(line), flush=True)
