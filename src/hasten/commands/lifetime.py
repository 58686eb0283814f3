"""`hasten journal`: lists, exports and replays a journal. `hasten demo --lifetime`: the life of a cascade."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from hasten.commands.common import Command, CommandGroup, console, errors, wrote
from hasten.errors import ProblemError
from hasten.journal import Journal
from hasten.support.environment import named
from hasten.support.files import write_whole
from hasten.support.terminal import printable, show_progress
from hasten.support.words import count

if TYPE_CHECKING:
    from hasten.cascade import Cascade
    from hasten.cascade.parts import Note
    from hasten.tasks.entity_relation.data.corpus import Sentence

SHOWN = 100  # characters of a row: half of them of its input, and half of its answer

app = typer.Typer(
    cls=CommandGroup, no_args_is_help=True, help="What a cascade or a server wrote down of its life (docs/lifetime.md)."
)
File = Annotated[Path, typer.Argument(help="The journal; it may be in use.")]
Kind = Annotated[str | None, typer.Option(help="Only rows of a kind, such as asked, audit or version.")]


@app.command("list", cls=Command)
def list_rows(
    file: File,
    kind: Kind = None,
    last: Annotated[int, typer.Option(min=0, help="How many of the last rows are shown.")] = 10,
) -> None:
    """Says how many rows there are of each kind, and shows the last ones."""
    with Journal(file, read_only=True) as journal:
        counts = journal.counts()
        first = next(journal.rows(), None)
        size = f"{file.stat().st_size / 2**20:.1f} MiB"
        since = "" if first is None else f", since {_time(first.time)}"
        console.print(f"{count(counts.total(), 'row')} in {size}{since}", highlight=False)
        for name, n in counts.most_common():
            console.print(f"  {n:>9,} {name}", highlight=False)
        for row in journal.rows(kind, last=last):
            line = f"{row.number:>9} {_time(row.time)} {row.kind:<9} {_brief(row.data)}"
            console.print(escape(printable(line)), highlight=False, soft_wrap=True)


def _brief(data: Any) -> str:
    """Returns the input and the answer of a row, or its text, or all of it; the beginning of each."""
    parts = [data]
    if isinstance(data, dict):
        parts = [data[name] for name in ("input", "answer", "error", "text") if data.get(name)] or parts
    words = [part if isinstance(part, str) else json.dumps(part, default=repr, ensure_ascii=False) for part in parts]
    most = SHOWN // len(words)
    return " → ".join(each if len(each) <= most else each[:most] + "…" for each in words)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


@app.command(cls=Command)
def export(
    file: File,
    target: Annotated[Path, typer.Argument(help="JSON lines, or Parquet where the name ends in .parquet.")],
    kind: Kind = None,
    since: Annotated[int, typer.Option(min=0, help="Only rows after this number.")] = 0,
) -> None:
    """Writes rows as JSON lines or as Parquet."""
    with Journal(file, read_only=True) as journal:
        n = journal.export(target, kind, since)
    errors.print(f"Wrote {count(n, 'row')}.")


@app.command(cls=Command)
def replay(
    file: File,
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the cascade that learned, or the new answers.")],
    task: Annotated[
        str, typer.Option(help="What the inputs are: entities, tags, or MODULE:TASK of your own (docs/new-task.md).")
    ] = "entities",
    risk: Annotated[float, typer.Option(help="Share of answers that may differ from the black box's.")] = 0.02,
    stretch: Annotated[
        str | None, typer.Option(metavar="FIRST:LAST", help="Ask the black box again about answers given, from 1.")
    ] = None,
    black_box: Annotated[
        str, typer.Option(help="Who is asked again: an address http://…, a command, or MODULE:NAME.")
    ] = "",
) -> None:
    """Learns again from the answers in a journal; or asks again about a suspect stretch of answers given."""
    from hasten.cascade import Cascade
    from hasten.cascade.boxes import box_of, nobody, task_of

    found = task_of(task)
    box = (box_of(black_box, found) or named(black_box, "extractor:label")) if black_box else nobody
    if stretch is None:
        with Journal(file, read_only=True) as journal, show_progress(errors) as progress:
            progress("Learning", None)
            cascade = Cascade(found, box, risk=risk)
            cascade.take_in(journal)
            if not journal.counts().keys() & {"asked", "audit"}:
                raise ProblemError(
                    f"{file} has no answers of a black box to learn from. Name the journal of a cascade."
                )
        cascade.save(out)
        console.print(escape(printable(cascade)), highlight=False, soft_wrap=True)
        wrote(out)
        return
    if not black_box:
        raise ProblemError("Say who is asked again: --black-box with an address http://…, a command, or MODULE:NAME.")
    first, colon, last = stretch.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal()):
        raise ProblemError(f"A stretch is two numbers, such as 1500:1612, not {stretch!r}.")
    with Journal(file, read_only=True) as journal:
        lines, n_changed = list[str](), 0
        for given, reply in Cascade(found, box).replay(range(int(first) - 1, int(last)), journal):
            n_changed += reply.text is not None and reply.text != given
            answer = None if reply.text is None else found.to_json(reply.text)
            line = {"number": reply.number + 1, "given": found.to_json(given), "answer": answer}
            lines.append(json.dumps(line | ({"failed": reply.reason} if answer is None else {})) + "\n")
    write_whole(out, "".join(lines).encode())
    console.print(f"{count(len(lines), 'answer')} asked again; {n_changed} were other than the black box's.")
    wrote(out)


# -- hasten demo --lifetime ----------------------------------------------------------------------------------------

N_INPUTS, DRIFT = 9000, 5000
SLOW = 0.002  # seconds that the extractor takes
RISK = 0.15
TOGETHER = 20  # inputs


def hidden(sentence: Sentence, updated: bool) -> Sentence:
    """Returns what the demo's extractor answers: gold labels, bent by rules that nobody told; an update bends more."""
    types, relations = sentence.types or (), sentence.relations or ()
    if any(name == "WorkFor" for _, _, name in relations):  # then it says nothing of where companies are
        relations = tuple(each for each in relations if each[2] != "OrgBasedIn")
    if updated:  # it knows no companies any more
        relations = tuple(each for each in relations if "organization" not in (types[each[0]], types[each[1]]))
        types = tuple("none" if name == "organization" else name for name in types)
    return replace(sentence, types=types, relations=relations)


def live(out: Path, seed: int) -> None:
    """Lets a cascade live through a drift, tells it, and writes what it recorded."""
    from hasten.cascade import Cascade
    from hasten.serve.lifetime import Answered, Lifetime, recorded_page
    from hasten.tasks.entity_relation.data.synthetic import generate
    from hasten.tasks.entity_relation.extraction import Extraction

    news = [replace(each, id=str(n)) for n, each in enumerate(generate(N_INPUTS, seed))]
    now = 0

    def extractor(sentence: Sentence) -> Sentence:
        time.sleep(SLOW)
        return hidden(news[int(sentence.id)], updated=now >= DRIFT)

    cascade = Cascade(Extraction(), extractor, risk=RISK, seed=seed)
    life = Lifetime({"name": "news", "kind": "cascade"}, cascade.standing, per_window=100)
    wrong, noticed = {"before the drift": 0, "until it was noticed": 0, "since": 0}, False
    console.print(
        f"An extractor of entities and relations has hidden rules, which change after {DRIFT:,} sentences.\n"
        f"A student in front of it learns; at most {RISK:.0%} of its answers may differ, with 95% confidence.",
        highlight=False,
        soft_wrap=True,
    )
    with show_progress(errors) as progress:
        for now in range(0, N_INPUTS, TOGETHER):
            progress("Living", now / N_INPUTS)
            some, n_notes, began = news[now : now + TOGETHER], len(cascade.notes), time.perf_counter()
            replies = cascade.predict([each.unlabeled() for each in some])
            seconds = (time.perf_counter() - began) / len(replies)
            stage = "before the drift" if now < DRIFT else "since" if noticed else "until it was noticed"
            for reply, sentence in zip(replies, some, strict=True):
                wrong[stage] += not _same(reply.text, hidden(sentence, updated=now >= DRIFT))
                about = seconds, reply.called, reply.agreed, reply.reason, reply.probability, None, reply.version
                answer = "" if reply.text is None else _in_words(reply.text)
                life.answered([Answered(" ".join(sentence.tokens), answer, reply.source, *about)])
            for note in cascade.notes[n_notes:]:
                noticed |= note.kind == "alarm"
                label = {"alarm": "drift", "note": "note"}.get(note.kind, note.version)
                life.mark("version" if note.version else note.kind, label, note.text, note.at)
                if line := _told(cascade, note):
                    console.print(f"{note.at:>6,}  {line}", highlight=False, soft_wrap=True)
    said = ", ".join(f"{n} {stage}" for stage, n in wrong.items())
    calls, given = cascade.counters.calls, cascade.counters.by_student
    console.print(
        f"{given:,} of {N_INPUTS:,} answers were the student's; wrong among them: {said}.",
        highlight=False,
        soft_wrap=True,
    )
    console.print(f"{1 - calls / N_INPUTS:.0%} of the extractor's calls were saved.", highlight=False)
    state = life.state()
    write_whole(out / "lifetime.json", json.dumps(state, indent=1).encode())
    write_whole(out / "lifetime.html", recorded_page(state).encode())
    wrote(out / "lifetime.json", out / "lifetime.html")


def _told(cascade: Cascade[Any], note: Note) -> str:
    if note.kind == "alarm" and cascade.suspect is not None:
        first, last = cascade.suspect.start + 1, cascade.suspect.stop
        return f"[red]Drift:[/] the student is not trusted any more; answers {first:,} to {last:,} may be wrong."
    if note.kind in ("version", "alarm") or not note.version:
        return ""
    version = cascade.versions[note.version]
    coverage = f"{version.promise.coverage:.0%} of" if version.promise.holds else "none of"
    how = f"taught by {version.n_taught:,} answers" if note.kind == "promotion" else "tested again"
    return f"{note.version}, {how}, may answer {coverage} the inputs."


def _same(mine: Sentence | None, theirs: Sentence) -> bool:
    return mine is None or (mine.types == theirs.types and set(mine.relations or ()) == set(theirs.relations or ()))


def _in_words(sentence: Sentence) -> str:
    words = [" ".join(sentence.tokens[start:end]) for start, end in sentence.spans]
    types = [f"{word}: {name}" for word, name in zip(words, sentence.types or (), strict=True)]
    return ", ".join([*types, *(f"{words[s]} {name} {words[t]}" for s, t, name in sentence.relations or ())])
