"""The lane's loop in Python: the reference for the compiled twin, and what runs without it.

See `contract`. Messages are taken one by one, and in bulk where they repeat each other (`repeats`).
"""

from collections.abc import Callable, Sequence
from operator import itemgetter

from jsctl.broker.accel.contract import (
    ANSWERS,
    FEW,
    HEADERS,
    HEARS,
    LARGE_BYTES,
    LEGS_MAX,
    MESSAGE_COST,
    OUTPUT_BYTES_MAX,
    STOP,
    SUBJECT_BYTES_MAX,
    SUBJECTS_MAX,
    Captured,
    Delivered,
    Leg,
    Member,
    Miss,
    Outputs,
    Passed,
    Written,
    drawn,
    next_lot,
)
from jsctl.broker.accel.families import LaneFamilies
from jsctl.broker.accel.fan import (
    NO_SIZE,
    Known,
    LaneFan,
    LaneHead,
    LaneLeg,
    LaneTarget,
    Plain,
    Sizes,
    take_written,
)
from jsctl.broker.accel.repeats import (
    ROWS_LINE_MIN,
    WORDS_USUAL,
    RowText,
    Shape,
    fixed_size,
    row_expression,
    row_texts,
    run_length,
)

TRACE = b"Nats-Trace-Dest"
"""The header that asks for a trace."""

ROWS_AFTER = 8
"""Messages of one shape in a row before an expression is made for them."""

ROWS_MAX = 512
"""Rows that are looked at together. When they cannot be taken together there are no more in that
call: what is looked at in vain must not be looked at again and again."""

Head = tuple[Known, bytes, int, int]
"""(subject, reply, header size, size) of a message; the header size is -1 without headers."""

NO_HEAD, NO_FAN = LaneHead(b"", b"", -1, -1), LaneFan([], None, [], [])
NOTHING_BEFORE: Head = (Known(None, b"", 0, 0), b"", -1, -1)
_NOTHING: dict[bytes, Plain] = {}

_subject_of = itemgetter(0)
_reply_of = itemgetter(1)


class PureTable:
    """See `contract.LaneTable`."""

    def __init__(
        self,
        verb: bytes,
        header_verb: bytes,
        stops: tuple[bytes, ...],
        line_max: int,
        payload_max: int,
        miss: Miss,
        /,
    ) -> None:
        self._verb, self._header_verb = verb, header_verb
        self._words, self._header_words = verb.split(b" ")[:-1], header_verb.split(b" ")[:-1]
        self._stops = stops
        self._line_max = line_max
        self._reach = len(verb) + line_max + 2
        largest = min(payload_max, LARGE_BYTES - 1)
        self._totals, self._sizes = Sizes(b"\r\n", largest), Sizes(b"", largest)
        self._miss = miss
        self._open(b"", None, 0, 0, 0)
        self.clear()

    # What it knows

    def clear(self) -> None:
        """Forget all subjects, fans and targets."""
        self._entries: dict[bytes, Known] = {}
        self._fronts: dict[bytes, Known] = {}
        self._header_fronts: dict[bytes, Known] = {}
        """By verb and subject."""
        self._plain: dict[bytes, Plain] = {}
        """What goes to some peers and nowhere else, by verb without headers and subject."""
        self._families = LaneFamilies()
        self._targets: list[LaneTarget] = []
        self._fans: list[LaneFan] = []
        self._legs_known = 0

    @property
    def full(self) -> bool:
        """Whether it learns nothing more."""
        return len(self._entries) >= SUBJECTS_MAX or self._legs_known >= LEGS_MAX

    def target(self, peer: object) -> int:
        """The number of a peer or sink."""
        self._targets.append(LaneTarget(peer))
        return len(self._targets) - 1

    def _target(self, number: int) -> LaneTarget:
        if not 0 <= number < len(self._targets):
            raise ValueError("no such target")
        return self._targets[number]

    def fan(
        self,
        legs: Sequence[Leg],
        counted: object,
        sinks: Sequence[int],
        groups: Sequence[Sequence[Member]],
    ) -> int:
        """The number of a fan."""
        if not all(groups):
            raise ValueError("a group has members")
        fan = LaneFan(
            [LaneLeg(self._target(one[0]), one) for one in legs],
            counted,
            [self._target(one) for one in sinks],
            [[LaneLeg(self._target(one[0]), one[:5], one[5]) for one in group] for group in groups],
        )
        self._fans.append(fan)
        self._legs_known += len(fan.legs) + len(fan.sinks) + sum(map(len, fan.groups))
        return len(self._fans) - 1

    def _ask(self, subject: bytes, *, asks: bool = True) -> Known | None:
        """What is known of a subject, by its family or after asking; None where it cannot be
        learned."""
        if len(subject) > SUBJECT_BYTES_MAX or b"\t" in subject or b"\r" in subject:
            return None
        family = self._families.find(subject)
        if family is not None:
            return self._known(family.fan, subject, kept=family.keeps(len(self._entries)))
        if self.full or not asks:
            return None
        number, cost, depth = self._miss(self._origin, subject)
        self._left -= cost
        if not STOP <= number < len(self._fans):
            raise ValueError("no such fan")
        fan = None if number == STOP else self._fans[number]
        self._families.add(subject, depth, fan)
        return self._known(fan, subject, kept=True)

    def _known(self, fan: LaneFan | None, subject: bytes, *, kept: bool) -> Known:
        front, header_front = self._verb + subject, self._header_verb + subject
        known = Known(fan, subject, len(front) + 1, len(header_front) + 1)
        if kept:
            self._entries[subject] = self._fronts[front] = known
            self._header_fronts[header_front] = known
            if known.plain is not None:
                self._plain[front] = known.plain
        return known

    # One call

    def _open(self, data: bytes, origin: object, flags: int, budget: int, lot: int) -> None:
        self._data, self._origin = data, origin
        self._headers, self._answers = bool(flags & HEADERS), bool(flags & ANSWERS)
        self._deaf = not flags & HEARS
        self._left, self._lot = budget, lot
        self._count = self._written = 0
        self._touched: list[LaneFan] = []
        self._bulk: Callable[[int], int] | None = None
        self._head, self._head_fan, self._before = NO_HEAD, NO_FAN, NOTHING_BEFORE
        self._repeats = 0
        self._in_rows = self._line_max >= ROWS_LINE_MIN

    def route(
        self, data: bytes, position: int, origin: object, flags: int, budget: int, lot: int
    ) -> Passed:
        """Take messages from `position` on."""
        self._open(data, origin, flags, budget, lot)
        try:
            while True:
                position = self._singles(position)
                if self._bulk is None:
                    break
                position = self._bulk(position)
        except BaseException:
            self.clear()
            raise
        cost, lot, outputs, count, size = budget - self._left, self._lot, None, 0, 0
        if self._touched:
            count = sum([len(fan.sizes) for fan in self._touched])
            size = sum([sum(fan.sizes) for fan in self._touched])
            outputs = self._outputs()
        self._data, self._origin = b"", None
        return position, count, size, cost, lot, outputs

    def _singles(self, position: int) -> int:
        """Message by message, until one has to stop or something begins that goes in bulk.

        This is for those that have neither headers nor a reply, and go to some peers: what stands
        before their size is known. `_other` is for the rest.
        """
        data, reach, totals = self._data, self._reach, self._totals
        find, plain = data.find, _NOTHING if self._deaf else self._plain
        end, repeats, before = len(data), 0, -1
        last: Plain | None = None
        self._bulk = None
        while position < end and self._left > 0:
            start = find(b"\n", position, position + reach) + 1
            front, _, word = data[position:start].rpartition(b" ")
            entry = plain.get(front)
            if entry is None:
                after = self._other(position, start, front, word)
                if after == position or self._bulk is not None:
                    return after
                position = after
                continue
            size = totals[word]
            after = start + size + 2
            if data[after - 2 : after] != b"\r\n":
                break
            fan = entry.fan
            if not fan.sizes:
                self._touched.append(fan)
            fan.sizes.append(size)
            self._left -= fan.cost
            tail = data[position + entry.behind : after]
            for extend, words, _, _ in entry.fronts:
                extend((words, tail))
            position = after
            if size != before:
                last, before, repeats = entry, size, 0
            elif fan.batch and (entry is last or repeats * self._in_rows > ROWS_AFTER):
                self._head, self._head_fan = LaneHead(entry.subject, b"", -1, size), fan
                self._bulk = self._run if entry is last else self._rows
                break
            else:
                last, repeats = entry, repeats + 1
        return position

    def _other(self, position: int, start: int, front: bytes, word: bytes) -> int:
        """One message of any kind; the position behind it, or that in front of it to stop."""
        head = self._parse(front, word, start)
        if head is None:
            return position
        known, reply, at, size = head
        after, fan = start + size + 2, known.fan
        if fan is None or self._data[after - 2 : after] != b"\r\n":
            return position
        if not self._may_pass(fan, reply, at, start, after - position):
            return position
        if not fan.sizes:
            self._touched.append(fan)
        fan.sizes.append(size)
        self._left -= fan.cost
        if at > 0:
            fan.stripped += at
        if fan.copies:
            self._write(head, fan, position, start, after)
        if fan.sinks:
            payload, headers = self._data[start : after - 2], b""
            if at > 0:
                headers, payload = payload[:at], payload[at:]
            row = (known.subject, reply, headers, payload, self._origin)
            for sink in fan.sinks:
                sink.rows.append(row)
        self._compare(head, fan)
        return after

    def _parse(self, front: bytes, word: bytes, start: int) -> Head | None:
        """Understand a control line, whose size is cut off; None for what is not canonical.

        What stands in front of a reply or a header size, in nearly all lines, is known.
        """
        known = self._fronts.get(front)
        if known is not None:
            return known, b"", -1, self._totals[word]
        first, _, last = front.rpartition(b" ")
        known = self._header_fronts.get(first)
        if known is not None and self._headers:
            at, size = self._sizes[last], self._totals[word]
            return (known, b"", at, size) if at <= size else None
        known = self._fronts.get(first)
        if known is not None and self._is_reply(last):
            return known, last, -1, self._totals[word]
        return self._read(front, word, start)

    def _read(self, front: bytes, word: bytes, start: int) -> Head | None:
        """As `_parse` for any line; asks for a subject that is not known, if all is there."""
        words = front.split(b" ")
        base = len(self._words)
        at, size = -1, self._totals[word]
        if words[:base] != self._words:
            if words[:base] != self._header_words or not self._headers:
                return None
            at = self._sizes[words.pop()]
        count = len(words) - base
        if size == NO_SIZE or at > size or not 1 <= count <= 2 or not words[base]:
            return None
        subject, reply = words[base], b""
        if count == 2:
            reply = words[base + 1]
            if not self._is_reply(reply):
                return None
        if self._data[start + size : start + size + 2] != b"\r\n":
            return None
        known = self._entries.get(subject) or self._ask(subject)
        return None if known is None else (known, reply, at, size)

    def _is_reply(self, word: bytes) -> bool:
        return not (not word or b"\t" in word or b"\r" in word or word.startswith(self._stops))

    def _may_pass(self, fan: LaneFan, reply: bytes, at: int, start: int, size: int) -> bool:
        """Whether a message, of so many bytes with its line, is for the loop; what wide fans
        write is counted."""
        if self._deaf and self._origin in fan.peers:
            return False
        if reply and self._answers and fan.cost == MESSAGE_COST:
            return False
        if at > 0 and self._data.find(TRACE, start, start + at) >= 0:
            return False
        if fan.copies > FEW:
            self._written += fan.words + fan.copies * size
            return self._written <= OUTPUT_BYTES_MAX
        return True

    def _write(self, head: Head, fan: LaneFan, position: int, start: int, after: int) -> None:
        known, reply, at, size = head
        data, subject, plain = self._data, known.subject, known.plain
        if at < 0:
            tail = rest = data[position + known.behind : after]
        else:
            tail = rest = data[position + known.header_behind : after]
            if fan.strips:
                rest = b"%d\r\n%s" % (size - at, data[start + at : after])
                rest = b"%s %s" % (reply, rest) if reply else rest
        if plain is not None:
            for extend, words, header_words, headers in plain.fronts:
                extend((header_words, tail) if headers and at >= 0 else (words, rest))
            return
        for leg in fan.legs:
            leg.write(subject, at, tail, rest)
        for group in fan.groups:
            self._lot = next_lot(self._lot)
            leg = group[drawn(self._lot, len(group))]
            leg.write(subject, at, tail, rest)
            leg.messages += 1
            leg.target.messages += 1
            leg.target.size += size if leg.headers or at < 0 else size - at

    def _compare(self, head: Head, fan: LaneFan) -> None:
        """Note whether a message is like the one before, so that it may go on in bulk."""
        known, reply, at, size = head
        before, self._before = self._before, head
        if before[2] != at or before[3] != size or (not reply) != (not before[1]):
            self._repeats = 0
            return
        self._repeats += 1
        if not fan.batch:
            return
        is_run = at < 0 and known.subject == before[0].subject and reply == before[1]
        if is_run or self._repeats * self._in_rows > ROWS_AFTER:
            self._head, self._head_fan = LaneHead(known.subject, reply, at, size), fan
            self._bulk = self._run if is_run else self._rows

    def _count_in(self, fan: LaneFan, sizes: list[int]) -> None:
        if not fan.sizes:
            self._touched.append(fan)
        fan.sizes += sizes
        self._left -= len(sizes) * fan.cost

    # In bulk

    def _affordable(self, fan: LaneFan, stride: int) -> int:
        """How many messages of so many bytes the call still takes."""
        left = -(-self._left // fan.cost)
        if fan.copies <= FEW:
            return left
        each = fan.words + len(fan.legs) * stride
        return min(left, (OUTPUT_BYTES_MAX - self._written) // each)

    def _run(self, position: int) -> int:
        """The same line, without headers, at every stride from `position` on; perhaps nowhere."""
        data, head, fan = self._data, self._head, self._head_fan
        line = data[position : data.find(b"\n", position, position + self._reach) + 1]
        size, stride = head.size, len(line) + head.size + 2
        reply = head.reply and head.reply + b" "
        if line != b"%s%s %s%d\r\n" % (self._verb, head.subject, reply, size):
            return position
        count = min(run_length(data, position, line, stride), self._affordable(fan, stride))
        if count <= 0:
            return position
        end = position + count * stride
        if fan.copies or fan.sinks:
            payloads = [data[at : at + size] for at in range(position + len(line), end, stride)]
        tail = line[len(self._verb) + len(head.subject) + 1 :]
        for leg in fan.legs:
            words = leg.verb + head.subject + leg.infix + tail
            leg.target.pieces += (words, (b"\r\n" + words).join(payloads), b"\r\n")
        for sink in fan.sinks:
            sink.rows += [(head.subject, head.reply, b"", one, self._origin) for one in payloads]
        self._count_in(fan, [size] * count)
        self._written += count * (fan.words + stride * fan.copies) * (fan.copies > FEW)
        return end

    def _rows(self, position: int) -> int:
        """As many messages of one shape as follow; perhaps none."""
        head, fan = self._head, self._head_fan
        shape = Shape(head.header_size, head.size, bool(head.reply))
        verb = self._verb if shape.header_size < 0 else self._header_verb
        fixed = fixed_size(verb, shape)
        most = min(self._affordable(fan, fixed + WORDS_USUAL), ROWS_MAX)
        expression = row_expression(verb, shape)
        bound = position + most * (fixed + WORDS_USUAL)
        rows: list[RowText] = expression.findall(self._data, position, bound)
        if rows and not rows[-1][0]:
            rows.pop()
        del rows[max(most, 0) :]
        if not rows or not self._are_common(fan, shape, rows):
            self._in_rows = False
            return position
        end = position + fixed * len(rows) + sum(map(len, map(_subject_of, rows)))
        end += sum(map(len, map(_reply_of, rows))) if shape.with_reply else 0
        if shape.header_size > 0 and self._data.find(TRACE, position, end) >= 0:
            self._in_rows = False
            return position
        self._count_in(fan, [shape.size] * len(rows))
        fan.stripped += max(shape.header_size, 0) * len(rows)
        written = (end - position) * fan.copies + len(rows) * fan.words
        self._written += written * (fan.copies > FEW)
        for leg in fan.legs:
            leg.target.pieces.append(row_texts(leg, shape, rows))
        for sink in fan.sinks:
            sink.rows += [(*row, self._origin) for row in rows]
        return end

    def _are_common(self, fan: LaneFan, shape: Shape, rows: list[RowText]) -> bool:
        """Whether all rows are known to go to one fan, and none to be carried out step by step.

        Nothing is asked for their sake: what that costs may be more than the call has left.
        """
        stops = self._stops
        if shape.with_reply and any([reply.startswith(stops) for _, reply, _, _ in rows]):
            return False
        for subject in dict.fromkeys(map(_subject_of, rows)):
            entry = self._entries.get(subject) or self._ask(subject, asks=False)
            if entry is None or entry.fan is not fan:
                return False
        return True

    # The end of a call

    def _outputs(self) -> Outputs:
        """What the fans that were used got, in the order of their first message."""
        written: list[Written] = []
        captured: list[Captured] = []
        delivered: list[Delivered] = []
        for fan in self._touched:
            messages, size = len(fan.sizes), sum(fan.sizes)
            for leg in fan.legs:
                leg.target.messages += messages
                leg.target.size += size - (0 if leg.headers else fan.stripped)
            if fan.legs:
                delivered.append((fan.counted, messages))
        for fan in self._touched:
            for leg in fan.legs:
                take_written(leg.target, written)
            for sink in fan.sinks:
                if sink.rows:
                    captured.append((sink.peer, sink.rows))
                    sink.rows = []
            for leg in [member for group in fan.groups for member in group]:
                take_written(leg.target, written)
                if leg.messages:
                    delivered.append((leg.counted, leg.messages))
                    leg.messages = 0
            fan.sizes.clear()
            fan.stripped = 0
        return written, captured, delivered
