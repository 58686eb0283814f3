"""A deployment for Ray Serve: each replica loads a model, and answers the requests that are waiting as a batch.

serve.run(deployment(Source("news.hasten"), num_replicas=4))
"""

from __future__ import annotations

from typing import Any

import msgspec
from ray import serve

from hasten.errors import HastenError
from hasten.serve.loading import Source
from hasten.serve.mlflow import Answerer, answer


class Replica:
    """One replica: JSON in, JSON out, as `POST /predict`."""

    def __init__(self, source: Source) -> None:
        self.served = Answerer(source()).served

    @serve.batch(max_batch_size=256, batch_wait_timeout_s=0)
    async def answer(self, bodies: list[bytes]) -> list[tuple[int, bytes]]:
        """Answers the bodies of requests; a bad request does not fail the others."""
        return [self._one(body) for body in bodies]

    def _one(self, body: bytes) -> tuple[int, bytes]:
        try:
            records = msgspec.json.decode(body)
            answers = answer(self.served, records if isinstance(records, list) else [records])
            return 200, msgspec.json.encode(answers if isinstance(records, list) else answers[0])
        except (HastenError, msgspec.DecodeError) as error:
            return 400, msgspec.json.encode({"error": str(error)})

    async def __call__(self, request: Any) -> Any:
        """Answers a request."""
        from starlette.responses import Response

        status, body = await self.answer(await request.body())
        return Response(body, status, media_type="application/json")


def deployment(source: Source, **options: Any) -> Any:
    """Returns the application of a model; `options` go to `serve.deployment`, such as num_replicas."""
    return serve.deployment(**{"name": "hasten"} | options)(Replica).bind(source)
