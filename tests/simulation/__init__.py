"""Whole servers on simulated disks and a simulated network: one seed, one run."""
