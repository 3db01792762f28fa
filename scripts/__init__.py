"""Tools for the maintainers: what made the tables that the package ships."""
