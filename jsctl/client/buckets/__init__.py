"""Key-value and object buckets: streams that are used by convention."""
