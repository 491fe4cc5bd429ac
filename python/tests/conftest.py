"""Finds the frameworks that are installed, and prints TAP for Meson as the tests of the reports do."""
