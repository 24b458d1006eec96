"""What a correction will cost, before it is run."""
