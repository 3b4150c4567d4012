"""JetStream as a Spark data source and sink, and the Spark session that runs it.

Nothing of Spark is imported by this package itself; the modules below it import PySpark when
they are imported. What runs where:

    options         what may be written behind `.option(...)`; no Spark, usable for checking alone
    java            which Java runtime starts Spark, and how
    runtime         a session: start Java, ship the package; failures explains what goes wrong
    connection      one blocking connection to a server (wire), who it is (login), and the few
                    requests of a reader or writer over it (jetstream)
    scan            one range of sequences -> chunks of rows, by a consumer or by direct gets
    offsets         how far a query is, per stream; what a checkpoint holds
    reading         options and stream facts -> ranges (plan), narrowed by filters (pushdown);
                    chunks -> Arrow batches; the batch reader and the streaming one
    writing         Arrow batches -> acknowledged messages, each exactly once per query, by means of
                    rows (messages), identity (ids), targets (streams), memory (what was written)
                    and publish (many in flight)
    source          the data source "jetstream", which makes the readers and writers
    pipeline        what `jsctl pipeline` runs
"""
