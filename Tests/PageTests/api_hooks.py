"""Of schemathesis: how a line of JSON is sent."""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    return value if isinstance(value, bytes) else json.dumps(value).encode()
