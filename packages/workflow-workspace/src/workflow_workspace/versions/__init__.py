"""Versions of a folder: taken by a scan, kept as trees of objects, restored and compared."""
