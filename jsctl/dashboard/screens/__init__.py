"""Screens: the tabs, the views of single things, the dialogs."""
