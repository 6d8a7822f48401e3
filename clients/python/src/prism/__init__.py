"""Hands reports to prismd, the telemetry daemon of this machine.

    with prism.Client(app_name="pos") as client:
        client.report("net", {"ms": 12})
"""

from ._aio import AsyncClient
from ._client import Client, LossCallback
from ._hooks import Handler, install_excepthook
from ._records import ABSENT, Change, Watch
from ._types import Answer, ClosedError, Loss, RefusedError, Result, Stats, TooLargeError
from ._version import VERSION as __version__

__all__ = [
    "ABSENT", "Answer", "AsyncClient", "Change", "Client", "ClosedError", "Handler", "Loss", "LossCallback", "RefusedError",
    "Result", "Stats", "TooLargeError", "Watch", "__version__", "install_excepthook",
]
