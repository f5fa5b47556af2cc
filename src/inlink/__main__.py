"""``python -m inlink``: the commands."""

from inlink.cli import main

if __name__ == "__main__":
    main()
