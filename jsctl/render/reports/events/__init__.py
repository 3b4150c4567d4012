"""Events of servers and streams as people read them: one line each, or a paragraph."""
