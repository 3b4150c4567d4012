"""`jsctl pipeline`: the table of its commands."""

from jsctl.commands.toolkit.grammar.spec import FORCE, JSON, Argument, Command, Group, Kind, Option

SPEC = Argument("file", "The pipeline's YAML file", required=True)
MASTER = Option("master", "Where Spark runs, as local[4], spark://host:7077, k8s://... or yarn")
MEMORY = Option("memory", "Heap of the Spark driver", metavar="1g")
CONF = Option("conf", "A Spark setting, may be repeated", Kind.MAP, metavar="K=V")
PROGRESS = Option(
    "progress", "Shows progress; off when stderr is no terminal", Kind.SWITCH, default="true"
)
SPARK = (MASTER, MEMORY, CONF, PROGRESS)
ARCHIVE = Argument("path", "Directory of the archive", required=True)
_PICTURES = (
    Option("charts", "Write a chart of every job into this directory", Kind.FILE),
    Option("chart-format", "Format of the charts", default="svg", choices=("svg", "png")),
    Option("html", "Write one page with all tables and charts", Kind.FILE),
)
_INPUT = (
    Option("stream", "The stream to look at, may be repeated; all by default", Kind.LIST),
    Option("archive", "An archive to look at instead of a stream", Kind.FILE),
    Option("telemetry", "The stream that `pipeline capture` fills", default="JSCTL_TELEMETRY"),
    Option("top", "Rows a table shows at most", Kind.INTEGER, default="20"),
)
AUDITS = ("gaps", "duplicates", "replicas", "archive", "mirror", "api", "all")
REPORTS = ("capacity", "subjects", "sizes", "redelivery", "lag", "all")

GROUP = Group(
    "pipeline",
    "Declarative pipelines, archives, audits and reports with Spark",
    (
        Command(
            "init",
            "Writes a new pipeline file to start from",
            "pipeline.spec:init",
            (Argument("name", "Name of the pipeline", required=True),),
            (
                Option("output", "File to write, NAME.yaml by default", Kind.FILE),
                Option("stream", "The stream to read", default="ORDERS"),
                Option(
                    "sink",
                    "Where rows go",
                    default="parquet",
                    choices=("parquet", "delta", "jetstream", "console"),
                ),
                FORCE,
            ),
            examples=("jsctl pipeline init orders --stream ORDERS --sink parquet",),
        ),
        Command(
            "validate",
            "Checks a pipeline file without starting Java",
            "pipeline.spec:validate",
            (SPEC,),
            (JSON,),
            examples=("jsctl pipeline validate orders.yaml",),
        ),
        Command(
            "plan",
            "Shows what a run would do, without starting Java",
            "pipeline.spec:plan",
            (SPEC,),
            (JSON,),
            examples=("jsctl pipeline plan orders.yaml",),
        ),
        Command(
            "run",
            "Runs a pipeline until it is stopped, or once",
            "pipeline.run:run",
            (SPEC,),
            (Option("once", "Take what is there, then end", Kind.FLAG), *SPARK),
            examples=(
                "jsctl pipeline run orders.yaml",
                "jsctl pipeline run orders.yaml --once --master 'local[2]'",
            ),
        ),
        Command(
            "status",
            "Shows how far pipelines are; all known ones without a file",
            "pipeline.state:status",
            (Argument("file", "The pipeline's YAML file or name"),),
            (JSON,),
            examples=("jsctl pipeline status", "jsctl pipeline status orders.yaml -j"),
        ),
        Command(
            "stop",
            "Ends a running pipeline after its present batch",
            "pipeline.state:stop",
            (Argument("file", "The pipeline's YAML file or name", required=True),),
            (Option("wait", "How long to wait for the end", Kind.DURATION, default="2m"),),
            examples=("jsctl pipeline stop orders.yaml",),
        ),
        Command(
            "doctor",
            "Checks this machine, the servers and a pipeline file",
            "pipeline.doctor:doctor",
            (Argument("file", "The pipeline's YAML file"),),
            (
                Option("deep", "Start Spark and read a stream through it", Kind.FLAG),
                *SPARK,
                JSON,
            ),
            examples=("jsctl pipeline doctor", "jsctl pipeline doctor orders.yaml --deep"),
        ),
        Command(
            "compact",
            "Merges the small batches of a parquet sink or archive",
            "pipeline.run:compact",
            (Argument("file", "A pipeline's YAML file, or a directory", required=True),),
            (
                Option("keep", "Leave so many of the newest batches alone", Kind.INTEGER),
                Option("file-size", "Size of the new files", Kind.SIZE, default="256MB"),
                *SPARK,
                JSON,
            ),
            examples=("jsctl pipeline compact orders.yaml", "jsctl pipeline compact /lake/orders"),
        ),
        Command(
            "export",
            "Archives a stream as Parquet; `stream backup` is the byte-exact copy",
            "pipeline.archive:export",
            (Argument("stream", "The stream to archive", required=True), ARCHIVE),
            (
                Option("filter", "Only these subjects, may be repeated", Kind.LIST),
                Option("from-seq", "First sequence", Kind.INTEGER),
                Option("to-seq", "Last sequence", Kind.INTEGER),
                Option("chunk", "Messages a batch", Kind.INTEGER, default="1000000"),
                *SPARK,
                JSON,
            ),
            examples=(
                "jsctl pipeline export ORDERS /archive/orders",
                "jsctl pipeline export ORDERS /archive/paid --filter 'orders.*.paid'",
            ),
        ),
        Command(
            "verify",
            "Checks an archive against its manifest, and against a stream",
            "pipeline.archive:verify",
            (ARCHIVE, Argument("stream", "A stream that should hold the same")),
            (*SPARK, JSON),
            examples=(
                "jsctl pipeline verify /archive/orders",
                "jsctl pipeline verify /archive/orders ORDERS2",
            ),
        ),
        Command(
            "restore",
            "Publishes an archive into a stream, in its order",
            "pipeline.archive:restore",
            (ARCHIVE, Argument("stream", "The stream to fill; made if missing", required=True)),
            (
                Option("rate", "Messages a second at most", Kind.INTEGER),
                Option("subject-map", "New subjects, as orders.>=copy.orders.>", Kind.LIST),
                Option("from-seq", "First sequence of the archive to publish", Kind.INTEGER),
                Option("replicas", "Replicas of a new stream", Kind.INTEGER),
                Option("dry-run", "Only says what would be done", Kind.FLAG),
                PROGRESS,
                JSON,
            ),
            examples=(
                "jsctl pipeline restore /archive/orders ORDERS2 --subject-map 'orders.>=copy.>'",
                "jsctl pipeline restore /archive/orders ORDERS --dry-run",
            ),
        ),
        Command(
            "capture",
            "Stores advisories, stream and consumer states over time for reports",
            "pipeline.capture:capture",
            options=(
                Option("stream", "Streams to watch, may be repeated; all by default", Kind.LIST),
                Option("into", "The stream that stores them", default="JSCTL_TELEMETRY"),
                Option("every", "Time between two looks", Kind.DURATION, default="10s"),
                Option("for", "End after this time", Kind.DURATION),
                Option("max-age", "How long a new stream keeps them", Kind.DURATION, default="30d"),
                Option("replicas", "Replicas of a new stream", Kind.INTEGER, default="1"),
            ),
            examples=("jsctl pipeline capture", "jsctl pipeline capture --for 1h --every 5s"),
        ),
        Command(
            "audit",
            "Looks for what should not be: " + ", ".join(AUDITS[:-1]),
            "pipeline.jobs:audit",
            (Argument("job", "Which audit", required=True, choices=AUDITS),),
            (*_INPUT, *_PICTURES, *SPARK, JSON),
            examples=(
                "jsctl pipeline audit replicas --stream ORDERS",
                "jsctl pipeline audit archive --stream ORDERS --archive /archive/orders",
            ),
        ),
        Command(
            "report",
            "Figures over streams and their history: " + ", ".join(REPORTS[:-1]),
            "pipeline.jobs:report",
            (Argument("job", "Which report", required=True, choices=REPORTS),),
            (*_INPUT, *_PICTURES, *SPARK, JSON),
            examples=(
                "jsctl pipeline report capacity",
                "jsctl pipeline report all --stream ORDERS --html report.html",
            ),
        ),
    ),
    aliases=("pipe",),
)
