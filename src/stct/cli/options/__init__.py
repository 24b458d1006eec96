"""The arguments and options of the ``stct`` command, each with its help text."""
