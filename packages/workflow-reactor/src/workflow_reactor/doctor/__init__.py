"""Asks a live endpoint what it can do, and makes a profile of the answers.

    findings = await examine(provider)
    provider = provider.with_profile(**profile_changes(findings))

Nothing here is needed to use a model, so nothing imports it.
"""

from workflow_reactor.doctor._examine import Finding, examine, is_broken, profile_changes

__all__ = ["Finding", "examine", "is_broken", "profile_changes"]
