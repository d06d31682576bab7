"""`python -m clawdforge` is the command `clawdforge`."""

from clawdforge.cli import main

if __name__ == "__main__":
    main()
