"""Faults that real clusters of real processes meet under load, and what they must come to.

    python -m tests.faults                        every row, three seeds each, a few rounds
    python -m tests.faults --rounds 200 --row "kill leader"
    python -m tests.faults --list

Publishers send each message until it is acknowledged, under a message id, while a row's fault is
carried out for some rounds. Afterwards the cluster is left alone until it is whole: every replica
current, nothing damaged, all servers healthy. Then every server is read. A row says how many
messages were acknowledged, how many of those are lost (missing or another one on any server),
doubled (one publish stored twice) or diverged (two servers disagree about a sequence), the longest
time without an acknowledgement, and how long it took to be whole. It fails when anything is lost,
doubled or diverged, or a time is above its target.

Rows about disks need file systems of their own: power is cut by the kernel (ext4 that drops what
it has not written), and only root has loop devices. Where there are none the row says so.
"""
