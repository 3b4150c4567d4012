"""JetStream as a Spark data source and sink, and the Spark session that runs it.

Nothing of Spark is imported by this package itself; the modules below it import PySpark when
they are imported. What runs where:

    options       what may be written behind `.option(...)`; no Spark, usable for checking alone
    java          which Java runtime starts Spark
    runtime       a session: start Java, ship the package, explain failures
    wire          one blocking connection to a server
    api           the few JetStream requests of a reader or writer, over `wire`
    plan          options and stream facts -> ranges of sequences
    scan          one range -> chunks of rows, by consumer or by direct get
    arrow         chunks of rows -> Arrow batches
    offsets       how far a query is, per stream; what a checkpoint holds
    source        the data source: batch reader, stream reader, writers
    sink          Arrow batches -> acknowledged messages, each exactly once per query
"""
