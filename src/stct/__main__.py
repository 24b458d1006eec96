"""``python -m stct`` is the ``stct`` command."""

from stct.cli import main

if __name__ == "__main__":
    main()
