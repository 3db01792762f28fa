"""Tools for maintainers: they make the tables, figures and agents that the package ships, and check the wheel."""
