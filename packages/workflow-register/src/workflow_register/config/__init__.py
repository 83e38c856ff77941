"""`workflow.yaml`: its types, checking, reading and editing."""
