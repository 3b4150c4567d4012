"""What is wrong with a text that is to be YAML, in one line."""


def yaml_problem(error: Exception) -> str:
    """Where and what, of an error of the library or of its input; others tell it themselves."""
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}: " if mark is not None else ""
    return f"not YAML: {where}{' '.join(problem.split())}"
