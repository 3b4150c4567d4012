"""The YAML file of a pipeline: its text, its keys, what may be wrong, the checked model."""
