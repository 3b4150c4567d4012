"""`jsctl dashboard`: the command; what it runs is imported only when it runs."""

from jsctl.commands.toolkit.grammar.spec import Command, Kind, Option

COMMAND = Command(
    "dashboard",
    "An interactive view of the cluster, worst things first",
    "dashboard.run:dashboard",
    options=(
        Option("system-context", "Context with the system account, for servers", metavar="NAME"),
        Option("system-user", "User of the system account", metavar="USER"),
        Option("system-password", "Password of the system account", metavar="PASSWORD"),
        Option("read-only", "Leave out everything that changes anything", Kind.FLAG),
        Option("refresh", "Time between two looks, 200ms to 60s", Kind.DURATION, default="1s"),
        Option("theme", "jsctl-dark, jsctl-light, jsctl-colourblind or a theme of Textual"),
        Option("ascii", "Draw with plain ASCII characters", Kind.FLAG),
        Option("once", "Print one look and end", Kind.FLAG),
        Option("output", "With --once: text, json or svg", default="text", short="o"),
        Option("size", "With --once: columns x rows", default="120x40", metavar="WxH"),
        Option("web", "Serve it to browsers on this machine", Kind.FLAG),
        Option("web-host", "Address to serve on", default="127.0.0.1"),
        Option("web-port", "Port to serve on, 0 for any", Kind.INTEGER, default="0"),
        Option(
            "web-url",
            "Address that browsers open, where a proxy with TLS stands in front",
            metavar="URL",
        ),
        Option("allow-actions", "With --web: allow changes", Kind.FLAG),
        Option("insecure", "With --web: allow other addresses than loopback", Kind.FLAG),
    ),
    examples=(
        "jsctl dashboard --context app --system-context sys",
        "jsctl dashboard --once -o json",
        "jsctl dashboard --web --web-port 8080",
        "jsctl dashboard --web --web-port 8080 --web-url https://dash.example.com",
    ),
)
