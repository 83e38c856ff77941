"""The exchange with an endpoint: sending, sorting faults, and trying again."""
