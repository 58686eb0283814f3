"""Models of every kind, and a server of one of them that most tests share."""

from __future__ import annotations

import logging
import sys

import pytest
from servers import SHAPES, Server

import hasten

pytest.importorskip("httptools")


@pytest.fixture(autouse=True)
def _own_logs():
    """Takes away the handlers that `hasten serve` sets up in this process: they hold streams that are closed later."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    from hasten.tasks.entity_relation.data.synthetic import generate
    from hasten.tasks.entity_relation.tagger import Tagger
    from hasten.tasks.entity_relation.task import PAPERS
    from hasten.tasks.tagging.corpus import generate as generate_tagged
    from hasten.tasks.tagging.tagger import SequenceTagger

    place = tmp_path_factory.mktemp("served")
    (place / "shapes.py").write_text(SHAPES)
    sys.path.insert(0, str(place))
    import shapes

    hasten.Speedup(PAPERS.schema).save(place / "er.hasten")
    hasten.Speedup(shapes.queens).save(place / "queens.hasten")
    Tagger.train(list(generate(120, 0))).save(place / "news.hasten")
    SequenceTagger.train(list(generate_tagged(120, 0)), ["at least 1 NNP"]).save(place / "tags.hasten")
    (place / "shop.lp").write_text(
        "Minimize\n obj: 3 a + 2 b + 4 c + d\nSubject To\n r1: a + b >= 1\n r2: b + c + d >= 1\n r3: c + a <= 1\n"
        "Binary\n a b c d\nEnd\n"
    )
    yield place
    sys.path.remove(str(place))


@pytest.fixture(scope="session")
def server(folder):
    server = Server(folder, "er.hasten", "--structures", "shapes:structures", "--journal", "er.journal")
    yield server
    assert server.end() == 0
    assert [each for each in server.logged() if each["level"] == "error"] == []
