"""`python -m gcb` is the same as `gcb`, for torchrun."""

if __name__ == "__main__":
    from gcb.cli.main import main

    main()
