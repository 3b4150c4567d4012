"""placeholder"""


class MonitorView:
    def __init__(self, node):
        self.started_ns = 0
