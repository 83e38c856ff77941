"""workflow.yaml, bundles and the registry of workflow names."""

from workflow_reactor import profile_for
from workflow_register._by_name import RegisteredWorkflows, registered_workflows
from workflow_register._errors import (
    BundleCorrupt,
    ConfigError,
    ConfigFault,
    EntryError,
    NameRejected,
    RegisterError,
    UnknownVersion,
    UnknownWorkflow,
)
from workflow_register._history import find_version, history, prune_history, rollback, unregister
from workflow_register._home import (
    bundles_path,
    config_path,
    find_home,
    store_path,
    unpacked_path,
)
from workflow_register._names import check_name
from workflow_register._registry import (
    DamagedRecord,
    Registration,
    WorkflowRecord,
    list_workflows,
    load_registered,
    lookup,
    read_registered,
    register,
)
from workflow_register.bundles._archive import (
    Bundle,
    BundleManifest,
    Requirements,
    read_bundle,
    write_bundle,
)
from workflow_register.bundles._build import (
    build_bundle,
)
from workflow_register.bundles._check import (
    CheckedBundle,
    check_bundle,
)
from workflow_register.bundles._environment import (
    Environment,
    changes_since,
    environment_of,
    unlike_lock,
)
from workflow_register.bundles._load import (
    HasDefinition,
    load_workflow,
)
from workflow_register.bundles._stored import (
    StoredBundle,
    bundle_objects,
    read_stored_bundle,
)
from workflow_register.bundles._unpack import (
    remove_unpacked,
)
from workflow_register.config._config import (
    Config,
    Limits,
    McpServerConfig,
    ModelConfig,
    ModelPrice,
    ProfileOverrides,
    ProviderConfig,
    SandboxRule,
    SupervisorConfig,
)
from workflow_register.config._file import (
    load_config,
    update_config,
)
from workflow_register.config._secrets import configured_secrets
from workflow_register.describing._changes import describe_changes, module_changes
from workflow_register.describing._fields import SchemaField, schema_fields
from workflow_register.describing._graph import (
    back_edges,
    is_only_transition,
    reading_order,
    table_rows,
)
from workflow_register.describing._mermaid import mermaid_graph
from workflow_register.describing._tree import tree_graph
from workflow_register.models._configured import (
    ConfiguredLlm,
    OpenProvider,
    configured_llm,
    effective_config,
    open_provider,
    provider_kinds,
)
from workflow_register.models._overrides import EVERY_SCENE, overriding_models
from workflow_register.models._presets import PRESETS, Preset
from workflow_register.models._scenes import (
    ResolvedModel,
    environment_config,
    make_provider,
    resolve_model,
)
from workflow_register.models._shared_endpoints import (
    keep_providers_open,
)

__all__ = [
    "EVERY_SCENE",
    "PRESETS",
    "Bundle",
    "BundleCorrupt",
    "BundleManifest",
    "CheckedBundle",
    "Config",
    "ConfigError",
    "ConfigFault",
    "ConfiguredLlm",
    "DamagedRecord",
    "EntryError",
    "Environment",
    "HasDefinition",
    "Limits",
    "McpServerConfig",
    "ModelConfig",
    "ModelPrice",
    "NameRejected",
    "OpenProvider",
    "Preset",
    "ProfileOverrides",
    "ProviderConfig",
    "RegisterError",
    "RegisteredWorkflows",
    "Registration",
    "Requirements",
    "ResolvedModel",
    "SandboxRule",
    "SchemaField",
    "StoredBundle",
    "SupervisorConfig",
    "UnknownVersion",
    "UnknownWorkflow",
    "WorkflowRecord",
    "back_edges",
    "build_bundle",
    "bundle_objects",
    "bundles_path",
    "changes_since",
    "check_bundle",
    "check_name",
    "config_path",
    "configured_llm",
    "configured_secrets",
    "describe_changes",
    "effective_config",
    "environment_config",
    "environment_of",
    "find_home",
    "find_version",
    "history",
    "is_only_transition",
    "keep_providers_open",
    "list_workflows",
    "load_config",
    "load_registered",
    "load_workflow",
    "lookup",
    "make_provider",
    "mermaid_graph",
    "module_changes",
    "open_provider",
    "overriding_models",
    "profile_for",
    "provider_kinds",
    "prune_history",
    "read_bundle",
    "read_registered",
    "read_stored_bundle",
    "reading_order",
    "register",
    "registered_workflows",
    "remove_unpacked",
    "resolve_model",
    "rollback",
    "schema_fields",
    "store_path",
    "table_rows",
    "tree_graph",
    "unlike_lock",
    "unpacked_path",
    "unregister",
    "update_config",
    "write_bundle",
]
