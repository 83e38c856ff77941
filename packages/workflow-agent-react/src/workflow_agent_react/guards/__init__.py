"""Rules in code about what a model may do, and the person they ask."""
