"""Lines that are decoded all at once say what they say one by one."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from hasten.tasks.entity_relation.data.columns import Columns
from hasten.tasks.text.lines import Block

FINE = b'{"id": "a", "tokens": ["Ada", "left"], "spans": [[0, 1]]}'
LINES = [
    FINE,
    b'{"tokens": ["\xc3\xa9"], "spans": [[0, 1]], "pos": ["X"], "more": {"x": [{}]}}',
    b'{"tokens": ["}", "\\n{"], "spans": []}',
    b'{"tokens": ["a"], "spans": [[0, 2]]}',
    b'{"tokens": ["\xff"], "spans": []}',
    b'{"tokens": ["a"], "spans": [],',
    b'"id": "cut"}',
    b"{",
    b"}",
    b"{}",
    b"[]",
    b"",
    b"  ",
    b"\xef\xbb\xbf" + FINE,
    b" " + FINE,
    FINE + b" ",
    FINE + FINE,
    FINE + b" " + FINE,
    b'{"tokens": ["a", "b"], "spans": [[1, 2], [0, 1]], "relations": [[0, 1, "r"]]}',
]


@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=5), st.booleans())
@example([FINE + FINE, b""], True)
@example([b'{"tokens": ["a"], "spans": [],', b'"id": "cut"}', FINE + FINE], True)
def test_lines_together_are_the_lines_one_by_one(lines, ended):
    block = Block("file", 3, b"\n".join(lines) + b"\n" * ended)
    together, apart = Columns.read(block), Columns.read(OneByOne(block))
    assert list(together.numbers) == list(apart.numbers)
    assert [(number, str(error)) for number, error in together.refused] == [(n, str(e)) for n, e in apart.refused]
    assert [(row.id, row.spans) for row in together.rows] == [(row.id, row.spans) for row in apart.rows]
    assert together.columns.tobytes() == apart.columns.tobytes()


class OneByOne:
    """A block whose lines are read one after the other."""

    def __init__(self, block: Block) -> None:
        self.first, self.entries = block.first, block.entries
