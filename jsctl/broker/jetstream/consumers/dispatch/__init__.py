"""Whom a consumer's messages go to, and when: who asks for them, or a subject at its pace."""
