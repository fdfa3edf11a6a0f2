"""Tables with columns: roles, guesses, transformations and the encoding that a model keeps."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import hogwild
from hogwild.data import ColumnRoles, ReadOptions
from hogwild.data import open as open_data
from hogwild.data.csr import CSRRows
from hogwild.data.hashing import column_of
from hogwild.data.packing.pack import pack
from hogwild.data.readers.csv_table import CSV
from hogwild.data.tables.table_encoding import from_record
from hogwild.errors import DataError, ModelError, ParameterError

ROLES = ColumnRoles(
    categorical=("tags:list:;", "city:dictionary"), numeric=("price:quantile:5",), text=("title:bigrams",)
)


def frame(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {
            "age": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(40, 10, rows).round()),
            "price": rng.exponential(10, rows).round(3),
            "city": rng.choice(["Ulm", "Bonn", None, 'K"ö, ln'], rows),
            "user_id": rng.integers(0, 50, rows),
            "title": rng.choice(["a red fox jumps", "the Blue bird\nsings", "NOTHING here to see"], rows),
            "tags": rng.choice(["a;b", "b", "c; a", None], rows),
        }
    )
    made.insert(1, "click", ((made.city == "Ulm") | (made.age > 50)).astype(int))
    return made


def csv(folder: Path, text: str, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def entries(rows: CSRRows) -> list[dict[int, float]]:
    values = rows.values if rows.values.size else np.ones(rows.nonzeros)
    bounds = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    return [
        dict(
            zip(rows.indices[start:stop].tolist(), np.round(values[start:stop].astype(float), 4).tolist(), strict=True)
        )
        for start, stop in bounds
    ]


def read(path: Any, **options: Any) -> CSRRows:
    rows = open_data(path, reading=ReadOptions(**options), shuffle=False).rows
    assert rows is not None
    return rows


def named(**features: float) -> dict[int, float]:
    return dict(sorted((column_of(name.replace("__", "=")), value) for name, value in features.items()))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A model of a CSV file that went through its own file, and the folder of the table in several formats."""
    folder = tmp_path_factory.mktemp("tables")
    made = frame()
    made.to_csv(folder / "a.csv", index=False)
    made.to_csv(folder / "a.tsv.gz", index=False, sep="\t")
    pq.write_table(pa.Table.from_pandas(made), folder / "a.parquet")
    data = open_data(folder / "a.csv", reading=ReadOptions(roles=ROLES))
    hogwild.minimise(hogwild.Linear(data), budget=3, strategy="serial").save(folder / "a.model")
    return hogwild.load(folder / "a.model"), folder


@pytest.mark.parametrize("form", ["a.tsv.gz", "a.parquet", "pandas", "polars", "arrow", "no label", "packed"])
def test_a_model_gives_the_same_scores_for_every_form_of_a_table(model: Any, form: str, tmp_path: Path) -> None:
    trained, folder = model
    made, expected = frame(), trained.decide(folder / "a.csv")
    assert expected.std() > 0.1
    if form == "packed":
        pack([folder / "a.csv"], tmp_path / "p", reading=ReadOptions(roles=ROLES), seed=1)
        packed = hogwild.Linear(tmp_path / "p")
        assert packed.source.encoding == from_record(trained.reading["encoding"])
        found = np.sort(trained.decide(packed.source), axis=0)
        np.testing.assert_array_equal(found, np.sort(expected, axis=0))
        return
    forms: dict[str, Any] = {
        "pandas": made, "polars": pl.from_pandas(made), "arrow": pa.Table.from_pandas(made),
        "no label": made.drop(columns="click"),
    }  # fmt: skip
    np.testing.assert_array_equal(trained.decide(forms.get(form, folder / form)), expected)


def test_columns_are_guessed_and_can_be_given(tmp_path: Path) -> None:
    path = csv(
        tmp_path, "click,age,user_id,day,title\n1,30,7,2020-01-01,one two three four\n0,40,8,2020-01-02,a b c d\n"
    )
    encoding = open_data(path).encoding
    assert encoding is not None
    assert encoding.label == "click"
    assert [(each.name, each.role, each.transformation) for each in encoding.columns] == [
        ("age", "numeric", "standard"), ("user_id", "categorical", "hash"), ("day", "categorical", "hash"),
        ("title", "text", "words"),
    ]  # fmt: skip
    roles = ColumnRoles(numeric=("3:none",), categorical=("t*",), drop=("day",))
    rows = read(path, roles=roles, label="age")
    assert rows.labels.tolist() == [30.0, 40.0]
    assert entries(rows)[1] == named(user_id=8.0, **{"title__a b c d": 1.0, "click": -1.0})


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("none", [{"x": 3.0}, {}, {"x": -1.0}, {}]),
        ("log", [{"x": 1.3863}, {}, {"x": -0.6931}, {}]),
        ("standard", [{"x": 1.3728}, {"x": -0.3922}, {"x": -0.9806}, {}]),
        ("quantile:2", [{"x#1": 1.0}, {"x#1": 1.0}, {"x#0": 1.0}, {}]),
        ("log-bins", [{"x=8": 1.0}, {"x=0": 1.0}, {"x=-4": 1.0}, {}]),
    ],
)
def test_numbers_are_transformed(tmp_path: Path, how: str, expected: list[dict[str, float]]) -> None:
    path = csv(tmp_path, "y,x\n1,3\n0,0\n1,-1\n0,\n")
    found = entries(read(path, roles=ColumnRoles(numeric=(f"x:{how}",))))
    assert found == [{column_of(name): value for name, value in row.items()} for row in expected]


def test_lists_dictionaries_and_words(tmp_path: Path) -> None:
    path = csv(tmp_path, 'y,tags,shop,t\n1,"a| b|",S,"Red, red"\n0,,T,\n')
    roles = ColumnRoles(categorical=("tags:list:|", "shop:dictionary"), text=("t:bigrams",))
    data = open_data(path, reading=ReadOptions(roles=roles, bits=10), shuffle=False)
    assert data.n_features == 2**10 + 2
    assert data.rows is not None
    each = round(1 / 3**0.5, 4)
    tags = {column_of(name, 10): 1.0 for name in ("tags=a", "tags=b")}
    words = {column_of("t=red", 10): round(2 / 3**0.5, 4), column_of("t=red red", 10): each}
    assert entries(data.rows) == [{**tags, **words, 1024: 1.0}, {1025: 1.0}]


def test_text_labels_are_classes(tmp_path: Path) -> None:
    path = csv(tmp_path, "label,x\nham,1\nspam,2\nham,3\n")
    data = open_data(path, shuffle=False)
    assert data.labels().tolist() == [0.0, 1.0, 0.0]
    assert data.encoding is not None
    assert data.encoding.classes == ("ham", "spam")
    other = csv(tmp_path, "label,x\nham,1\neggs,2\n", "b.csv")
    with pytest.raises(DataError, match=r"b.csv, line 3, column 'label': the label 'eggs' is none of 'ham', 'spam'"):
        open_data(other, reading=ReadOptions(encoding=data.encoding))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1,5,x\n0,6,y\n", ("1", "2", "3")),
        ("a;b\n1;2\n", None),
        ('"a, b"\tc\n1\t2\n', None),
        ("\ufeffa|b\n1|2\n", None),
    ],
)
def test_separators_and_headers_are_found(tmp_path: Path, text: str, names: tuple[str, ...] | None) -> None:
    data = open_data(csv(tmp_path, text, "a.txt" if "\t" in text else "a.csv"))
    assert data.encoding is not None
    assert data.encoding.names == names
    assert data.n_rows == 2 if names else 1


def test_a_file_without_header_and_label_is_predicted(tmp_path: Path) -> None:
    path = csv(tmp_path, "1,5,x\n0,6,y\n1,7,x\n")
    trained = hogwild.minimise(hogwild.Linear(path), budget=2, strategy="serial").model
    expected = trained.decide(path)
    np.testing.assert_array_equal(trained.decide(csv(tmp_path, "5,x\n6,y\n7,x\n", "b.csv")), expected)
    with pytest.raises(DataError, match="4 columns, and 3 are expected"):
        trained.decide(csv(tmp_path, "1,5,x,7\n", "c.csv"))


def test_quotes_over_the_border_of_parts(tmp_path: Path) -> None:
    cell = 'say ""it""\n' * 3000
    path = csv(tmp_path, "y,a,b\n" + "".join(f'{k % 2},"{cell}",5" x\n' for k in range(20)))
    with gzip.open(tmp_path / "b.csv.gz", "wt") as packed:
        packed.write(path.read_text())
    for each in (path, tmp_path / "b.csv.gz"):
        pieces = list(CSV.read(each, ReadOptions(), 1 << 16))
        assert sum(map(len, pieces)) == 20


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("y,price\n1,2\n", {"label": "z"}, r"there is no label column 'z'"),
        ("y,price\n1,2\n", {"roles": ColumnRoles(numeric=("pirce",))}, "'pirce'. Did you mean 'price'"),
        ("y,price\n1,2\n", {"roles": ColumnRoles(numeric=("price:lgo",))}, "Behind a colon may be: none, log"),
        ("y,x\n1,2\n3,4,5\n", {}, r"a.csv, line 3: the row has 3 columns, and 2 are expected"),
        ("y,x\n1,2\n,4\n", {}, r"a.csv, line 3, column 'y': the label is missing"),
        ("y,x\n1,2\n1,a\n", {"roles": ColumnRoles(numeric=("x",))}, r"'a' is not a number"),
        ('y,x\n1,2\n1,"a\n', {}, "line 3: a quote is not closed"),
        ("y,y\n1,2\n", {}, "several columns have this name"),
        ("y\n1\n", {}, "no columns besides the label"),
        ("y,x\n", {}, "no rows"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_data(csv(tmp_path, text), reading=ReadOptions(**options))


def test_text_far_behind_the_sample_is_an_error_with_its_line(tmp_path: Path) -> None:
    lines = "".join(f"{k % 2},{k}\n" for k in range(50_000))
    path = csv(tmp_path, f"y,x\n{lines}1,oops\n")
    encoding = open_data(csv(tmp_path, "y,x\n1,2\n0,3\n", "b.csv")).encoding
    with pytest.raises(DataError, match=r"a.csv, line 50,002, column 'x': 'oops' is not a number"):
        open_data(path, reading=ReadOptions(encoding=encoding))


def test_quantiles_are_few() -> None:
    with pytest.raises(ParameterError, match="between 2 and 1,000 bins"):
        ColumnRoles(numeric=("x:quantile:1",))


@pytest.mark.parametrize(
    "change",
    [
        {"columns": []}, {"bits": 40}, {"bits": True}, {"label": 3}, {"classes": ["a", "a"]}, {"more": 1},
        {"columns": [{"name": "x", "role": "numeric", "transformation": "standard"}]},
        {"columns": [{"name": "x", "role": "numeric", "transformation": "standard", "statistics": [1, 0]}]},
        {"columns": [{"name": "x", "role": "numeric", "transformation": "quantile:3", "statistics": [2, 1]}]},
        {"columns": [{"name": "x", "role": "categorical", "transformation": "dictionary", "values": [1]}]},
        {"columns": [{"name": "x", "role": "magic", "transformation": "none"}]},
        {"columns": [{"name": "x", "role": "numeric", "transformation": "list:;"}]},
    ],
)  # fmt: skip
def test_records_of_models_are_checked(model: Any, tmp_path: Path, change: dict[str, Any]) -> None:
    from hogwild import array_file

    _, folder = model
    arrays, record = array_file.load(folder / "a.model", ModelError)
    record["reading"]["encoding"] |= change
    array_file.save(tmp_path / "bad.model", arrays, json.loads(json.dumps(record)))
    with pytest.raises(ModelError, match="incomplete or inconsistent"):
        hogwild.load(tmp_path / "bad.model")


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hogwild.cli import main

    made = frame(100)
    made["click"] = np.where(made.click == 1, "yes", "no")
    made.to_csv(tmp_path / "a.csv", index=False)
    train = ["train", tmp_path / "a.csv", "--drop", "title,age", "--categorical", "tags:list:;", "--epochs", "2"]
    assert main([*map(str, train), "--strategy", "serial", "--out", str(tmp_path / "m")]) == 0
    assert "label 'click' with 2 classes; numbers (standard): price; categories (hash): city" in capsys.readouterr().err
    assert main(["predict", str(tmp_path / "m"), str(tmp_path / "a.csv")]) == 0
    assert set(capsys.readouterr().out.split()) <= {"yes", "no"}
    for command in (["inspect", tmp_path / "a.csv"], ["pack", tmp_path / "a.csv", tmp_path / "p"]):
        assert main([*map(str, command), "--drop", "t*"]) == 0
        assert "numbers (standard): age, price; categories (hash): city, user_id" in capsys.readouterr().err


@pytest.mark.parametrize("loss", ["squared", "huber", "poisson"])
def test_labels_that_are_texts_are_no_numbers(loss: str, tmp_path: Path) -> None:
    path = csv(tmp_path, "label,x\nno,1\nyes,2\nno,3\nyes,4\n")
    for problem in (hogwild.Linear, hogwild.FactorisationMachine):
        with pytest.raises(DataError, match="the labels are texts such as 'no' and 'yes', not numbers"):
            hogwild.minimise(problem(path, loss), budget=1)
    assert hogwild.minimise(hogwild.Linear(path), budget=1).model.predict(path).tolist() == [0, 0, 1, 1]


def test_other_forms_of_a_table_give_the_same_scores(model: Any, tmp_path: Path) -> None:
    trained, folder = model
    expected, table = trained.decide(folder / "a.csv"), pa.Table.from_pandas(frame())
    frame().to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    with gzip.open(tmp_path / "b.ndjson.gz", "wt") as packed:
        packed.write((tmp_path / "a.jsonl").read_text())
    pa.feather.write_feather(table, tmp_path / "a.feather")
    with pa.OSFile(str(tmp_path / "a.arrows"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)
    for name in ("a.jsonl", "b.ndjson.gz", "a.feather", "a.arrows"):
        np.testing.assert_array_equal(trained.decide(tmp_path / name), expected)


def test_folders_with_partitions(tmp_path: Path) -> None:
    table = pa.table({"label": [0, 1, 1, 0], "x": [1.0, 2.0, 3.0, 4.0], "city": ["a b", "c", None, "c"]})
    pq.write_to_dataset(table, tmp_path / "parts", partition_cols=["city"])
    (tmp_path / "parts" / "_SUCCESS").touch()
    reading = ReadOptions(roles=ColumnRoles(numeric=("x:none",)))
    data = open_data(tmp_path / "parts", reading=reading, shuffle=False)
    assert data.rows is not None
    found = sorted(map(str, entries(data.rows)))
    assert found == sorted(map(str, entries(read(csv(tmp_path, "label,x,city\n0,1,a b\n1,2,c\n1,3,\n0,4,c\n"),
                                                 roles=ColumnRoles(numeric=("x:none",))))))  # fmt: skip
    packed = pack([tmp_path / "parts"], tmp_path / "packed", reading=reading)
    assert packed.encoding == data.encoding
    trained = hogwild.minimise(hogwild.Linear(data), budget=2, strategy="serial").model
    assert trained.decide(tmp_path / "parts").shape == (4, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"label":1,"x":2}\n{"label":1,"x":\n', "line 2: the line is not JSON"),
        ('{"label":1,"x":2}\n[1]\n', "line 2: the line is not an object"),
        ("null\n", "line 1: the line is not an object"),
        ("\ufeff null\n", "line 1: the line is not an object"),
        ('{"label":1,"x":2}\n\n\t null\n', "line 3: the line is not an object"),
        ('{"label":1,"x":2}\n{"label":1,"x":"a"}\n', "column 'x': a value of the type string"),
        ('{"label":1,"x":2,"x":3}\n', "line 1: a key is twice"),
        ('{"label":1,"x":2}\n{"x":3}\n', "line 2, column 'label': the label is missing"),
    ],
)
def test_wrong_json_lines(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_data(csv(tmp_path, text, "a.jsonl"))


def test_several_processes_pack_a_table_as_one_does(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        frame(200).to_csv(tmp_path / name, index=False)
    made = [
        pack([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / str(workers), workers=workers) for workers in (1, 2)
    ]
    assert made[0].encoding == made[1].encoding
    np.testing.assert_array_equal(made[0].labels(), made[1].labels())
    np.testing.assert_array_equal(made[0].frequencies(), made[1].frequencies())
