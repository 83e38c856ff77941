"""Models as `workflow.yaml` names them, opened when a role uses one."""
