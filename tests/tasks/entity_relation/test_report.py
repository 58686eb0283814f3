"""The report is one whole, safe page, whatever the results hold."""

import copy
import math
import re
from html.parser import HTMLParser

import pytest

from hasten.kernels.search.nodes import FORCED
from hasten.paper import figures, report
from hasten.paper.methods import PAPER_ROWS
from hasten.paper.report import find_paper
from hasten.tasks.evaluation import charts
from hasten.tasks.evaluation.page import label_colours

VOID = {"meta", "br", "img", "input", "link", "hr"}


def row(model, time=5.0, **more):
    names = ("entity_f1_gold", "relation_f1_gold", "entity_f1_ilp", "relation_f1_ilp", "validity", "exact_match")
    base = dict.fromkeys(names, 0.5) | {
        "model": model,
        "beam": None,
        "theta": None,
        "proved": 0.0,
        "solver_calls": 0,
        "costs_computed": 1.0,
        "time_ms": time,
        "time_ms_std": 0.25,
        "features_ms": 2.0,
        "inference_ms": time - 2.0,
        "table": "ours",
        "note": "",
    }
    return base | more


def made_up():
    """Results with every section, of numbers and sentences that nobody measured or wrote elsewhere."""
    lazy = {"features_ms": None, "inference_ms": None, "table": "2", "costs_computed": 0.6}
    right, wrong = ["person", "location", "LiveIn", "NoRel"], ["organization", "location", "Kill", "LocatedAt"]
    violation = "args: Kill needs source=person, got source=organization for variable 0"
    return {
        "about": {
            "hasten": "0", "source": "Tarn Gazette", "synthetic": False, "black_box": "structured",
            "solver": "highs", "runs": 3, "n_train": 70, "n_test": 40, "n_unlabeled": 1000, "cost_scale": 8.0,
            "n_learned": 800, "seeds": 1, "epochs": 5, "answered_by": {"highs": 40}, "split": [],
            "entity_labels": ["person", "location", "organization", "none"],
        },
        "rows": [
            row("ILP", 802.0, table="1", solver_calls=40),
            row("search", 6.0, table="1", note="greedy"),
            row("constrained search", 8.0, table="1"),
            row("speedup, Algorithm 1", 7.0, beam=2, table="1", interval={"relation_f1_gold": [0.41, 0.59]}),
            row("speedup, averaged", 7.0, beam=2, table="1", relation_f1_ilp=0.987),
            row("certified", 6.0, exact_match=1.0, validity=1.0, proved=1.0),
            row("speedup, Algorithm 1", 4.0, beam=1, theta=2.0, relative_theta=0.25, **lazy),
            row("speedup, Algorithm 1", 2.0, beam=1, theta=0.0, relative_theta=0.0, **lazy),
            row("speedup, averaged", 4.0, beam=1, theta=2.0, relative_theta=0.25, **lazy),
            row("calibrated, enforced", 3.0, beam=1, theta=FORCED, **lazy),
            row("calibrated", 5.0, beam=2, theta=None, **lazy),
        ],
        "paper": list(PAPER_ROWS),
        "theta_sweep": [
            row(model, 3.0 + theta, beam=beam, theta=8 * theta, relative_theta=theta)
            for model in ("speedup, Algorithm 1", "speedup, averaged")
            for beam in (1, 2)
            for theta in (0.0, 0.1, 1.0)
        ],
        "learning_curve": [
            {"model": model, "beam": beam, "n": n, "exact_match": 0.6 + n / 10_000}
            for model in ("speedup, Algorithm 1", "speedup, averaged")
            for beam in (1, 2)
            for n in (30, 100, 1000)
        ],
        "by_size": [
            {"entities": n, "sentences": 9, "ILP": 300.0 * n, "greedy search": 2.0 * n, "beam 2": 3.0, "certified": 4.0}
            for n in (2, 3, 5)
        ],
        "proofs": [
            {"sentences": "test", "by looking": 30, "by repairing": 9, "by sweeping": 0, "left open": 1},
            {"sentences": "unlabeled", "by looking": 900, "by repairing": 100, "by sweeping": 0, "left open": 0},
        ],
        "weights": [
            {"factor": "args", "labels": {"source": "person", "relation": "LiveIn", "target": "location"},
             "weight": 1.5},
            {"factor": "relation_target", "labels": {"relation": "Kill", "target": "none"}, "weight": -0.75},
            {"factor": "both", "labels": {"forward": "Kill", "backward": "NoRel"}, "weight": 0.5},
        ],
        "examples": [
            {
                "words": [["Ada Marlow", 0], ["left", None], ["Tarn", 1], [".", None]],
                "names": ["Ada Marlow", "Tarn", "Ada Marlow → Tarn", "Tarn → Ada Marlow"],
                "null_labels": ["none", "NoRel"],
                "labels": {"greedy search": wrong, "learned search": right, "ILP": right, "gold": right},
                "violations": {"greedy search": [violation], "learned search": [], "ILP": []},
            }
        ],
    }  # fmt: skip


class Page(HTMLParser):
    """Checks that tags are balanced, and keeps what the tests ask about."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def test_the_page_is_balanced_and_needs_nothing_else():
    page = report.render(made_up())
    read = Page(page)
    assert page.startswith("<!DOCTYPE html>")
    assert not {"script", "link", "img", "iframe", "object"} & set(read.tags)
    for name, value in read.attributes:
        assert not name.startswith("on")
        if name in ("href", "src", "xlink:href"):
            assert value.startswith("#")
    assert "http" not in page
    assert "@import" not in page
    assert "url(" not in page


def test_ids_are_unique_and_links_lead_to_them():
    read = Page(report.render(made_up()))
    ids = [value for name, value in read.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value for name, value in read.attributes if name == "href"} == {f"#{each}" for each in ids}


def test_the_headline_is_computed_from_the_rows():
    text = Page(report.render(made_up())).text
    assert "200× faster inference" in text  # 800 ms over 4 ms
    assert "134× faster end to end" in text  # 802 ms over 6 ms
    assert "0 solver calls" in text
    assert "0.987 relation F1 against the ILP" in text


def test_synthetic_data_is_called_so():
    results = made_up()
    assert "synthetic data" not in Page(report.render(results)).text.lower()
    results["about"]["synthetic"] = True
    assert "Synthetic data." in Page(report.render(results)).text


def test_the_papers_figures_stand_under_its_own_methods():
    results = made_up()
    found = {
        (each["model"], each["beam"], each["theta"]): find_paper(each, results["paper"])
        for each in results["rows"]
        if each["table"] != "ours"
    }
    assert found["ILP", None, None]["time_ms"] == 239
    assert found["speedup, Algorithm 1", 2, None]["relation_f1_ilp"] == 0.752
    assert found["speedup, Algorithm 1", 1, 2.0]["relation_f1_ilp"] == 0.546
    for ours in (("speedup, averaged", 2, None), ("speedup, averaged", 1, 2.0), ("calibrated", 2, None),
                 ("calibrated, enforced", 1, FORCED)):  # fmt: skip
        assert found[ours] is None
    assert report.render(results).count('<tr class="paper">') == 6
    assert "in the paper" in report.render(results)


def test_another_corpus_shows_nothing_of_the_papers_figures():
    results = made_up() | {"paper": []}
    page = report.render(results)
    assert '<tr class="paper">' not in page
    assert "in the paper" not in page
    assert "CoNLL" not in page
    assert "The paper’s figures are left out: they are of another corpus" in Page(page).text


def test_the_lead_counts_what_was_learned_from():
    results = made_up()
    text = Page(report.render(results)).text
    assert "learned from its answers to 800 sentences without labels (200 more calibrate θ), both tested on 40." in text
    assert "the mean of 3 runs" in text
    results["about"] |= {"runs": 1, "seeds": 5}
    text = Page(report.render(results)).text
    assert "in one thread, of one run." in text
    assert "All of it was done 5 times" in text
    assert "means over 5 seeds" in text


def test_deviations_and_intervals_stand_by_each_f1():
    results = made_up()
    for each in results["rows"]:
        each["std"] = {"relation_f1_gold": 0.0123}
    text = Page(report.render(results)).text
    assert "0.500 ± 0.012 0.41–0.59" in text


def test_rows_say_who_answered():
    results = made_up()
    results["about"]["answered_by"] = {"gurobi": 30, "highs": 10}
    results["rows"][0] |= {"note": "highs 10 that are too large for gurobi", "building_ms": 41.0}
    text = Page(report.render(results)).text
    assert "certified, against gurobi (30 sentences) and highs (10 sentences), costs given" in text
    assert "highs 10 that are too large for gurobi; its models made before, in 41.0 ms" in text


def test_five_points_are_named_and_all_say_what_they_are():
    page = report.render(made_up())
    broad = page.split("Time against accuracy", 1)[1].split('<div class="narrow">')[0]
    names = re.findall(r'<text class="name"[^>]*>([^<]+)</text>', broad)
    assert len(names) == len(set(names))
    assert set(names) <= set(figures.NAMED.values())
    assert {"ILP", "certified", "greedy search"} <= set(names)
    assert broad.count("<title>") == len(made_up()["rows"]) + len(PAPER_ROWS)
    assert page.index("Time against accuracy") < page.index("<table")


def test_fourteen_types_have_fourteen_colours():
    names = [f"type {n}" for n in range(14)]
    colours = label_colours([*names, "none"], {"none"})
    assert len(set(colours.values())) == 15
    assert colours["none"] == "var(--c5)"
    assert len(set(label_colours(names[:4]).values())) == 4


def test_theta_is_shown_sensibly():
    text = Page(report.render(made_up())).text
    assert "forced" in text
    assert "e+308" not in text
    assert "1797693134862315" not in text


def test_the_fastest_search_is_told_by_the_rows():
    results = made_up()
    text = Page(report.render(results)).text
    assert "The fastest calibrated search, calibrated, enforced b=1, is 2.0× as fast" in text  # 6 ms over 3 ms


def test_what_was_run_is_said_in_words_with_units():
    results = made_up()
    results["about"] |= {"proved_unlabeled": 1.0, "n_unlabeled": 8000, "later_key": 12345}
    text = Page(report.render(results)).text
    assert "proved unlabeled 100.0%" in text
    assert "unlabeled 8,000" in text
    assert "later key 12,345" in text
    assert "n_" not in text


@pytest.mark.parametrize("evil", ["<script>alert(1)</script>", '"><img src=x onerror=y>', "a & b", "</style>"])
def test_every_text_is_escaped(evil):
    results = made_up()
    example = results["examples"][0]
    example["words"][0][0] = example["words"][1][0] = example["names"][0] = example["names"][2] = evil
    for labels in example["labels"].values():
        labels[0] = labels[2] = evil
    example["labels"][evil] = ["person", evil, evil, evil]
    example["null_labels"].append(evil)
    example["violations"] = {"greedy search": [evil]}
    results["about"] |= dict.fromkeys(("source", "solver", "black_box", "machine", "hasten", evil), evil)
    results["about"]["entity_labels"] = [evil]
    results["weights"][0]["labels"] = {"source": evil, "relation": evil}
    results["weights"][1] = {"factor": evil, "labels": {evil: evil}, "weight": 1.0}
    results["rows"] += [row(evil, note=evil, table=table) for table in ("1", "2", "ours", evil)]
    for each in results["by_size"] + results["proofs"]:
        each[evil] = 3.0
    results["proofs"][0]["sentences"] = evil
    page = report.render(results)
    read = Page(page)
    assert not {"script", "img"} & set(read.tags)
    assert page.count("</style>") == 1
    assert evil in read.text


@pytest.mark.parametrize("section", sorted(made_up()))
@pytest.mark.parametrize("empty", ["missing", "none", "empty"])
def test_a_missing_section_leaves_a_page(section, empty):
    results = made_up()
    if empty == "missing":
        del results[section]
    else:
        results[section] = None if empty == "none" else type(results[section])()
    Page(report.render(results))


def test_no_results_at_all_still_make_a_page():
    assert "No rows were measured" in Page(report.render({})).text


@pytest.mark.parametrize("value", [None, math.nan, math.inf, 0.0, "odd"])
def test_numbers_may_be_missing(value):
    results = made_up()
    for section in ("rows", "theta_sweep", "learning_curve", "by_size", "weights"):
        for each in results[section]:
            for key, old in each.items():
                if isinstance(old, float):
                    each[key] = value
    results["about"] |= {"n_test": value, "cost_scale": value, "runs": value}
    results["proofs"][0] |= {"by looking": value, "by repairing": value}
    text = Page(report.render(results)).text
    assert "nan" not in text.split()
    assert "inf" not in text.split()


def test_the_steps_of_proofs_are_shown_but_those_that_proved_nothing():
    page = report.render(made_up())
    text = Page(page).text
    assert "How the answers were proved" in text
    assert "40 test sentences 75%" in text
    assert 'title="9 by repairing"' in page
    assert "by sweeping" not in text


def test_rendering_leaves_the_results_alone():
    results = made_up()
    before = copy.deepcopy(results)
    report.render(results)
    assert results == before


def test_those_who_label_alike_share_a_drawing_and_differences_stand_out():
    page = report.render(made_up())
    text = Page(page).text
    assert "greedy search 3 differences" in text
    assert "learned search, ILP, gold Ada Marlow person left Tarn location . Ada Marlow → Tarn LiveIn" in text
    assert page.count('class="chip other"') == 3
    assert "Kill needs source=person, got source=organization for “Ada Marlow”" in text


def test_a_relation_that_only_the_reference_has_is_shown_and_one_that_nobody_has_is_not():
    results = made_up()
    results["examples"][0]["labels"]["greedy search"] = ["person", "location", "NoRel", "NoRel"]
    text = Page(report.render(results)).text
    assert "Ada Marlow → Tarn NoRel" in text
    assert "Tarn → Ada Marlow" not in text


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("linear", [0.0, 1.0]),
        ("linear", [3.0]),
        ("linear", [-2.0, 1e6]),
        ("log", [0.0, 0.01, 4.0]),
        ("log", [0.0]),
        ("log", [7.0, 9.0]),
        ("log", [3.0, 30_000.0]),
        ("near one", [0.0, 0.97, 1.0]),
        ("near one", [1.0]),
    ],
)
def test_an_axis_holds_its_values_in_order(kind, values):
    scale = charts.Scale.over(charts.Axis("", kind), values, 50.0, 450.0)
    at = [scale(value) for value in values]
    assert at == sorted(at)
    assert all(49.9 <= each <= 450.1 for each in at)
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 13
    assert ticks == sorted(set(ticks))
    assert all(49.9 <= scale(tick) <= 450.1 for tick in ticks)


def test_the_report_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    report.write_report(made_up(), path)
    assert path.read_text(encoding="utf-8") == report.render(made_up())
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        report.write_report({}, path)
    assert path.read_text(encoding="utf-8") == report.render(made_up())
    assert list(tmp_path.iterdir()) == [path]
