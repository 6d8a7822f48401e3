"""Hands reports to prismd, the telemetry daemon of this machine.

    with prism.Client(app_name="pos") as client:
        client.report("net", {"ms": 12})
"""

from ._aio import AsyncClient
from ._client import Client, LossCallback
from ._hooks import Handler, install_excepthook
from ._types import Answer, ClosedError, Loss, Result, Stats, TooLargeError
from ._version import VERSION as __version__

__all__ = [
    "Answer", "AsyncClient", "Client", "ClosedError", "Handler", "Loss", "LossCallback", "Result", "Stats", "TooLargeError",
    "__version__", "install_excepthook",
]
