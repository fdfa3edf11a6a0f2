"""The examples of servers answer requests, good and bad, as the model does."""

import json
import runpy
import threading
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from hogwild.models.linear import LinearModel

EXAMPLES = Path(__file__).parents[1] / "examples" / "serving"
WRONG = {'{"99": 1.0}': "no column 99", '{"1": NaN}': "the value nan"}


@pytest.fixture
def model(tmp_path):
    weights = np.array([[1.0], [-2.0], [0.5]], np.float32)
    LinearModel(weights, np.zeros(1, np.float32), "squared", None, "identity").save(tmp_path / "a.model")
    return tmp_path / "a.model"


def test_the_server_of_the_standard_library(model):
    server = runpy.run_path(str(EXAMPLES / "http_server.py"))["server"](str(model), 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"

        def ask(body):
            try:
                with urllib.request.urlopen(address, body.encode(), timeout=60) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                return error.code, json.load(error)

        assert ask('{"0": 3.0, "2": 4.0}') == (200, {"prediction": 5.0})
        for body, what in WRONG.items():
            code, answer = ask(body)
            assert code == 422
            assert what in answer["error"]
        for body in ("[1]", "no JSON", '{"a": 1}', ""):
            assert ask(body)[0] == 400
    finally:
        server.shutdown()
        server.server_close()


def test_fastapi(model, monkeypatch):
    from fastapi.testclient import TestClient

    monkeypatch.setenv("MODEL", str(model))
    with TestClient(runpy.run_path(str(EXAMPLES / "fastapi_app.py"))["app"]) as client:
        assert client.post("/predict", json={"0": 3.0, "2": 4.0}).json() == {"prediction": 5.0}
        assert client.get("/healthz").json() == {"features": 3}
        refused = client.post("/predict", json={"99": 1.0})
        assert (refused.status_code, "no column 99" in refused.json()["detail"]) == (422, True)
        assert client.post("/predict", json={"a": 1.0}).status_code == 422
