"""A model behind FastAPI: requests name columns and values, or the cells of a table.

MODEL=clicks.model uvicorn --app-dir examples/serving fastapi_app:app --workers 2
curl -s localhost:8000/predict -H 'content-type: application/json' -d '{"3": 1.0, "17": 0.5}'
"""

from __future__ import annotations

import os

from fastapi import FastAPI, HTTPException

import hogwild
from hogwild.errors import HogwildError

app = FastAPI()
model = hogwild.load(os.environ["MODEL"])  # once in each process: it runs no code of the file


@app.post("/predict")
def predict(row: dict[int, float]) -> dict[str, float]:
    """Score one row. Rows that do not fit the model are answered with 422 and the reason."""
    try:
        return {"prediction": float(model.predict(row)[0])}
    except HogwildError as reason:
        raise HTTPException(422, str(reason)) from None


@app.get("/healthz")
def healthz() -> dict[str, int]:
    return {"features": model.n_features}
