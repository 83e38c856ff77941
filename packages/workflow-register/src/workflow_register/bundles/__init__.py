"""Bundles: packing an entry script with its modules, checking and importing them."""
