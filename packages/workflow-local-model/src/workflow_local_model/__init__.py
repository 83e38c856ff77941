"""An embedded model for workflows: catalogue, verified download, local server."""

from workflow_local_model._catalogue import (
    CATALOGUE,
    DEFAULT_MODEL,
    HubSource,
    LocalModel,
    Source,
    WheelSource,
    default_cache,
    find_model,
    is_present,
    model_path,
)
from workflow_local_model._errors import (
    CacheUnusable,
    DiskFull,
    LocalModelError,
    ModelAbsent,
    PullError,
    ServerError,
    SourceError,
    UnknownModel,
    WrongHash,
)
from workflow_local_model._provider import open_provider
from workflow_local_model.pull._progress import Phase, PullProgress
from workflow_local_model.pull._pull import pull
from workflow_local_model.serve._serve import ServedModel, serving
from workflow_local_model.serve._server import run_server

__all__ = [
    "CATALOGUE",
    "DEFAULT_MODEL",
    "CacheUnusable",
    "DiskFull",
    "HubSource",
    "LocalModel",
    "LocalModelError",
    "ModelAbsent",
    "Phase",
    "PullError",
    "PullProgress",
    "ServedModel",
    "ServerError",
    "Source",
    "SourceError",
    "UnknownModel",
    "WheelSource",
    "WrongHash",
    "default_cache",
    "find_model",
    "is_present",
    "model_path",
    "open_provider",
    "pull",
    "run_server",
    "serving",
]
