"""JetStream as a Spark data source and sink, and the Spark session that runs it.

Nothing of Spark is imported by this package itself; the modules below it import PySpark when
they are imported. What runs where:

    options         what may be written behind `.option(...)`; no Spark, usable for checking alone
    java            which Java runtime starts Spark; gateway starts it
    runtime         a session: start Java, ship the package; failures explains what goes wrong
    wire            one blocking connection to a server; login says who it is
    jetstream       the few requests of a reader or writer, over `wire`
    plan            options and stream facts -> ranges of sequences; pushdown narrows them
    scan            one range -> chunks of rows, by scan_consumer or by scan_direct
    arrow           chunks of rows -> Arrow batches
    offsets         how far a query is, per stream; what a checkpoint holds
    source          the data source and its batch reader; stream_source is the streaming one
    sink            Arrow batches -> acknowledged messages, each exactly once per query, by means of
                    rows (messages), identity (ids), targets (streams), memory (what was written)
                    and publish (many in flight)
"""
