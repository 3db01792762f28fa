"""`python -m gcb` is the same as `gcb`, for torchrun."""

from gcb.cli.main import main

if __name__ == "__main__":
    main()
