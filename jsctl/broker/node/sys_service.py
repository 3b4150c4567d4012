"""placeholder"""

from jsctl.broker.turn import Answer


class SysService:
    def __init__(self, node, monitor):
        pass

    def start(self, now):
        pass

    def tick(self, now):
        pass

    def query(self, q):
        return Answer(q.token, 200, "application/json", b"{}")

    def take(self, sink):
        sink.take()

    def closing(self, s, reason):
        pass

    def api_request(self, r):
        pass

    def lame_duck(self):
        pass

    def consumer_advisories(self, unit, facts):
        pass

    def next_due_ns(self):
        return None
