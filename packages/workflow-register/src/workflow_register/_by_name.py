"""The workflows of a store by their names, for child threads: found once, then by their bundle."""

from __future__ import annotations

from workflow_cas import Store
from workflow_protocol import Hash
from workflow_register._registry import read_registered
from workflow_register.bundles._environment import environment_of
from workflow_register.bundles._load import HasDefinition, load_workflow
from workflow_register.bundles._stored import bundle_objects, read_stored_bundle


class RegisteredWorkflows:
    """What `workflow_execute.WorkflowRegistry` asks for, on the names that `register` gives."""

    async def find(self, store: Store, name: str, /) -> Hash:
        """Give the stored bundle that a name stands for now, with the versions it runs under.

        Raises:
            UnknownWorkflow: nothing is registered under the name.
            BundleCorrupt: the stored bytes are no bundle of this version.
            EntryError: it can't be imported here, at which file and line.
        """
        bundle = await read_registered(store, name)
        load_workflow(bundle)  # it has the versions of what it imports then
        objects = bundle_objects(bundle, environment_of(bundle))
        await store.commit(objects)
        return objects[-1].hash

    async def load(self, store: Store, bundle: Hash, /) -> HasDefinition:
        """Import the workflow of a stored bundle.

        Raises:
            StoreError: the bundle can't be read.
            BundleCorrupt: the stored bytes are no bundle of this version.
            EntryError: it can't be imported here, at which file and line.
        """
        found, _ = await read_stored_bundle(store, bundle)
        return load_workflow(found)


registered_workflows = RegisteredWorkflows()
"""Registered as an entry point: the engine finds it where this package is installed."""
