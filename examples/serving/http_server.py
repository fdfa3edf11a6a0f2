"""A model behind the server of Python's standard library: nothing else has to be installed, and nothing is fast.

python examples/serving/http_server.py clicks.model 8000
curl -s localhost:8000 -d '{"3": 1.0, "17": 0.5}'
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import hogwild
from hogwild.errors import HogwildError

LONGEST = 2**20  # bytes of a request


def server(path: str, port: int) -> ThreadingHTTPServer:
    """Load the model, and return a server on this machine; port 0 is any that is free."""
    model = hogwild.load(path)

    class Predict(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            code, answer = answer_to(model, self.rfile.read(min(int(self.headers["Content-Length"] or 0), LONGEST)))
            body = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return ThreadingHTTPServer(("127.0.0.1", port), Predict)


def answer_to(model: Any, body: bytes) -> tuple[int, dict[str, Any]]:
    """Return the status and the answer to a request: a row by the numbers of its columns."""
    try:
        row = {int(column): value for column, value in json.loads(body).items()}
        return 200, {"prediction": float(model.predict(row)[0])}
    except HogwildError as reason:  # the row does not fit the model
        return 422, {"error": str(reason)}
    except (ValueError, AttributeError):
        return 400, {"error": 'A request is one row, such as {"3": 1.0, "17": 0.5}.'}


if __name__ == "__main__":
    server(sys.argv[1], int(sys.argv[2])).serve_forever()
