"""JSON Schemas: walking over them, what an endpoint takes of them, and what fits them."""
