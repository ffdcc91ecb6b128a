"""python -m tutti.perf: measures a collective over a range of sizes, with the table of nccl-tests."""
from __future__ import annotations

import sys
from typing import List, Optional

from . import _launch, _options


def main(arguments: Optional[List[str]] = None) -> int:
    options = _options.parse(sys.argv[1:] if arguments is None else arguments)
    ranks = _launch.local_ranks(options)
    if ranks > 0:
        return _launch.start(ranks, options, sys.argv[1:] if arguments is None else arguments)
    from ._measure import measure  # only ranks load the library

    return measure(options)


if __name__ == "__main__":
    sys.exit(main())
