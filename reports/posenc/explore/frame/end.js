// The last part of the script, after all views.
beginTheme();
explore.ready = begin();
