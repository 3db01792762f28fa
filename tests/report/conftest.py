"""A browser, for the page on a phone."""

from helpers.browser import browser  # noqa: F401 (a fixture)
