"""How jsctl talks to a server; the only package that imports nats-py.

Each part knows only those before it:

    addresses      URLs of servers and proxies, checked
    refusals       what a server refuses, and whom it concerns
    login          what a connection proves itself with
    failures       errors of the library -> errors of ours
    library        the library's client, made to keep its promises
    connection     settings -> a connected client
    requests       one typed request to the JetStream API
    manager        administration of one account: streams, consumers, groups, messages
    system, facts  what servers tell of themselves, by the system account or monitoring ports
    backup         a stream into a directory
"""
