"""What part of the broker a planted bug is in."""

OF_FILES = {
    "batches": "batches",
    "chains": "chains",
    "copies": "sources",
    "counters": "counters",
    "gets": "direct gets",
    "letters": "dead letters",
    "schedules": "schedules",
    "ttl": "streams",
}
"""`test_simulation_*.py` whose planted bugs are all in one."""
OF_BUGS = {
    "sessions": ("KeepsWhoUnsubscribed", "plans_are_never_made_anew"),
    "lane": ("LosesTheEndOfARun", "TurnsRunsAround"),
    "interest": (
        "TellsRoutesOfNoSubscription",
        "far_members_are_asked_first",
        "one_connection_is_told_of_interest",
        "what_a_lost_connection_told_counts_on",
        "what_comes_by_routes_goes_on_to_other_clusters",
    ),
    "forwarding": ("forwarded_twice", "lost_words_are_not_missed"),
    "mesh": ("TakesRoutedTwice", "no_wake_up_for_a_ping"),
    "transfer": (
        "a_received_store_is_never_synced_again",
        "other_messages_are_believed",
        "the_last_message_of_an_answer_is_left_out",
    ),
    "storage faults": (
        "IgnoresFailedDisks",
        "a_lost_disk_counts_as_whole",
        "damaged_logs_count_as_whole",
        "damaged_messages_are_taken_for_removed",
        "frames_of_the_log_are_not_verified",
        "hopeless_at_once",
        "what_finds_no_room_is_dropped",
        "what_is_written_anew_takes_its_place_at_once",
    ),
    "consumers": (
        "any_number_without_ack",
        "delivered_once_more",
        "floor_jumps",
        "half_the_ack_wait",
        "no_filter",
        "no_rate",
        "tokens_without_limit",
    ),
    "streams": (
        "half_the_window",
        "nothing_expires",
        "one_consumer_is_enough",
        "one_more_expires",
        "one_more_of_a_subject",
    ),
    "raft and the log": (
        "acks_before_sync",
        "commits_an_older_term_by_count",
        "forgets_the_tail_at_restart",
        "goes_on_before_the_sync_has_ended",
        "publishes_are_acknowledged_when_proposed",
        "reads_wait_for_who_has_left",
        "voters_are_added_again",
        "votes_before_sync",
    ),
}


def area_of(bug: str, test: str) -> str:
    """By its name, or that of the test that plants it. Raises StopIteration for none."""
    file = test.partition(".py")[0].removeprefix("test_simulation_")
    return OF_FILES.get(file) or next(area for area, bugs in OF_BUGS.items() if bug in bugs)
