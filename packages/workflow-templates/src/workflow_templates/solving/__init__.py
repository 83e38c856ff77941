"""The template `solve_issue`: reading an issue, developing, and proof that it is fixed."""
