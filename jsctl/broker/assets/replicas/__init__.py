"""What a replica of a stream or consumer is: its log applied, its state kept, its leading."""
