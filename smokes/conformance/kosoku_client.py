"""Runs the Autobahn cases of PyPI's `kosoku` against a server and tells each as one line of JSON."""

import asyncio
import json
import sys

import kosoku


async def main():
    exclude = sys.argv[2:] or None
    try:
        results = await kosoku.run_fuzzingclient(sys.argv[1], None, exclude, concurrency=2)
    except kosoku.FailureError as failure:
        results = failure.results
    for it in results:
        line = {
            "case": it.case_id,
            "passed": it.passed,
            "behavior": it.behavior.value,
            "close": it.behavior_close.value,
            "expected": it.expectation,
            "got": f"{it.result} {it.result_close}",
        }
        print(json.dumps(line), flush=True)


asyncio.run(main())
