"""Each sentence of SECURITY.md, tried."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hogwild
from hogwild import array_file, cache_folder, models
from hogwild.cli import main
from hogwild.cli.streams import escape_controls
from hogwild.data.reader import ReadOptions
from hogwild.data.text_limits import TextLimits
from hogwild.errors import CheckpointError, DataError, HogwildError, MessageError, ModelError
from hogwild.lab.report.page import write_report
from hogwild.lab.report_model import Report, Section
from hogwild.runtimes.ray import wire_codec
from hogwild.training import module_checkpoints
from hostile_models import MODELS

TEXT = (Path(__file__).parents[1] / "SECURITY.md").read_text()
TESTED: dict[str, str] = {}
Test = Callable[..., None]


class Payload:
    """An object whose pickle makes a file when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def says(*sentences: str) -> Callable[[Test], Test]:
    def noted(test: Test) -> Test:
        TESTED.update(dict.fromkeys(sentences, test.__name__))
        return test

    return noted


@says("A model file never runs code", "A checkpoint never runs code")
def test_pickles_in_place_of_models_and_checkpoints(tmp_path: Path) -> None:
    file, mark = tmp_path / "file", tmp_path / "mark"
    contents = [pickle.dumps(Payload(mark))]
    torch.save({"x": Payload(mark)}, file)
    contents.append(file.read_bytes())
    for content in contents:
        file.write_bytes(content)
        with pytest.raises(ModelError):
            models.load(file)
        with pytest.raises(HogwildError):
            array_file.load(file, CheckpointError)
        assert main(["predict", str(file), str(file)]) == 1
    assert not mark.exists()
    pickle.loads(contents[0])
    assert mark.exists()  # the pickle does what it should: this test can fail


@says("A checkpoint never runs code")
def test_a_pickle_in_place_of_a_checkpoint_of_a_module(tmp_path: Path) -> None:
    file, mark = tmp_path / module_checkpoints.LATEST, tmp_path / "mark"
    torch.save({"record": "{}", "x": Payload(mark)}, file)
    with pytest.raises(CheckpointError):
        module_checkpoints._read(file)
    assert not mark.exists()
    torch.load(file, weights_only=False)
    assert mark.exists()


@says("A model file whose contents contradict each other")
@pytest.mark.parametrize("kind", MODELS)
def test_a_model_that_contradicts_itself(tmp_path: Path, kind: str) -> None:
    MODELS[kind](tmp_path / "model")
    arrays, record = array_file.load(tmp_path / "model", ModelError)
    for name in arrays.keys() - {"names"}:  # The names of a graph cut are text.
        array_file.save(tmp_path / "wrong", {**arrays, name: arrays[name][None]}, record)
        with pytest.raises(ModelError, match="inconsistent"):
            models.load(tmp_path / "wrong")


@says("A data file never runs code")
def test_pickled_objects_in_an_archive(tmp_path: Path) -> None:
    file, mark = tmp_path / "a.npz", tmp_path / "mark"
    np.savez(file, X=np.array([[Payload(mark)]], object), y=np.zeros(1))
    with pytest.raises(DataError, match="npz"):
        hogwild.data.open(file)
    assert not mark.exists()


@says("A data file takes bounded memory and time")
def test_limits(tmp_path: Path) -> None:
    file = tmp_path / "a.svm"
    file.write_bytes(b"1 1:1\n" + bytes(1000))
    with pytest.raises(DataError, match="the line is longer"):
        hogwild.data.open(file, reading=ReadOptions(limits=TextLimits(longest_line=100)))
    np.savez(
        tmp_path / "a.npz", data=np.ones(1), row=np.zeros(1, int), col=np.zeros(1, int), format=np.array(b"coo"),
        shape=np.array([2**40, 1]),
    )  # fmt: skip
    with pytest.raises(DataError, match="does not fit into memory"):
        hogwild.data.open(tmp_path / "a.npz", reading=ReadOptions(unlabelled=True))


@says("A configuration file never runs code")
def test_a_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.svm").write_text("1 1:1\n0 2:1\n")
    mark = tmp_path / "mark"
    for text in (f"!!python/object/apply:os.system ['touch {mark}']", "no_such_option = 1", 'epochs = "x"'):
        (tmp_path / "run.toml").write_text(text)
        assert main(["train", str(tmp_path / "a.svm"), "--config", str(tmp_path / "run.toml")]) in (1, 2)
        assert "should not happen" not in capsys.readouterr().err
    assert not mark.exists()


@says("Names in files cannot steer a terminal")
def test_control_characters() -> None:
    assert escape_controls("\x1b]0;x\x07\u202e") == "\\x1b]0;x\\x07\\u202e"


@says("Names in files cannot run code in a report")
def test_names_in_a_report(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    section = Section("a", evil, evil, (), (), ({evil: evil},), evil, {evil: evil})
    write_report(Report(evil, (section,), evil, {evil: evil}, {evil: evil}), tmp_path / "page.html")
    assert evil not in (tmp_path / "page.html").read_text()


@says("Compiled code is loaded only from folders", "A folder for compiled code in the temporary directory")
def test_folders_of_compiled_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tried in full in test_cache_folder.py."""
    source, shared = tmp_path / "source", tmp_path / "shared"
    source.mkdir()
    shared.mkdir()
    shared.chmod(0o777)
    (source / "__pycache__").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(source / "__pycache__"))
    chosen = cache_folder._chosen(str(source), str(shared), str(tmp_path)).path
    assert chosen is not None
    assert shared not in chosen.parents
    assert chosen.parent.stat().st_mode & 0o777 == 0o700


@says("Source, environment variables and options are the user's own")
def test_a_folder_that_the_user_names_is_taken(tmp_path: Path) -> None:
    chosen = cache_folder._chosen(str(tmp_path), str(tmp_path / "own"), str(tmp_path)).path
    assert chosen is not None
    assert chosen.parent == tmp_path / "own"


@says("Functions and modules that are passed as parameters are run")
def test_functions_of_the_user_are_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    hogwild.minimise(
        hogwild.Linear(([[1.0], [2.0]], [1.0, 2.0]), loss="squared"), budget=hogwild.Budget(epochs=1),
        callbacks=[lambda event: mark.touch()],
    )  # fmt: skip
    assert mark.exists()


@says("A pickled estimator runs code when it is unpickled")
def test_a_pickled_estimator(tmp_path: Path) -> None:
    estimator, mark = hogwild.HogwildClassifier(), tmp_path / "mark"
    estimator.note = Payload(mark)
    pickle.loads(pickle.dumps(estimator))
    assert mark.exists()


@says("A Ray cluster is as safe as its network", "Messages between workers are parsed and never unpickled")
def test_messages_are_not_unpickled(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    content = pickle.dumps(Payload(mark))
    with pytest.raises(MessageError):
        wire_codec.decode_envelopes([content], len(content))
    assert not mark.exists()
    advice = (Path(__file__).parents[1] / "docs" / "guide" / "cluster.md").read_text()
    assert "RAY_AUTH_MODE=token" in advice
    assert "RAY_USE_TLS=1" in advice


def test_each_sentence_has_a_test() -> None:
    sentences = re.findall(r"^- (.*)$", TEXT, re.MULTILINE)
    assert len(sentences) > 12
    for sentence in sentences:
        assert any(sentence.startswith(start) for start in TESTED), f"no test says: {sentence}"
    for start in TESTED:
        assert any(sentence.startswith(start) for sentence in sentences), f"SECURITY.md does not say: {start}"
