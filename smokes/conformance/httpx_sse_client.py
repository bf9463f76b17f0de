"""Tells every event of a stream as one line of JSON: PyPI's `httpx-sse`, from an id where one is given."""

import json
import sys

import httpx
from httpx_sse import connect_sse

headers = {"Last-Event-ID": sys.argv[2]} if len(sys.argv) > 2 else {}
with httpx.Client(timeout=None) as client:
    with connect_sse(client, "GET", sys.argv[1], headers=headers) as source:
        for it in source.iter_sse():
            line = {"kind": "event", "name": it.event, "id": it.id, "data": it.data, "retry": it.retry}
            print(json.dumps(line), flush=True)
