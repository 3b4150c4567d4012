/* What is done with each message of a batch alike: the twin of columns.py, which is the reference
 * and has the layouts. Against the limited API of Python 3.11, as _lane.c.
 *
 * Batches are lists and tuples of bytes, whose references are borrowed for a call. Nothing that
 * could run other code, as the making of a list could, stands between a look at a length and the
 * copy that it is for. Every length is bounded before it is added, every allocation checked.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define RECORD_OVERHEAD 30
#define HEADED_BYTES 4
#define FRAME_HEADER_BYTES 36
#define FRAME_MAGIC UINT32_C(0x46534A01)
#define FRAME_VERSION 1
#define SUBJECT_BYTES_MAX 0xFFFF
#define ID_BYTES_MAX 0xFFFF
#define ID_OVERHEAD 18
#define BYTES_MAX ((Py_ssize_t)1 << 30)
#define DIGITS_MAX 20

static const char FAST_INGEST[] = ".$FI";
static const char ONLY_ID[] = "NATS/1.0\r\nNats-Msg-Id:";
#define TEXT_BYTES(text) ((Py_ssize_t)sizeof(text) - 1)

typedef struct {
    const char *start;
    Py_ssize_t size;
} Text;

static PyObject *array_type; /* of the standard library; set once, when the module is made */

/* -- numbers, little endian -------------------------------------------------------------------- */

static void put16(char *to, uint32_t value) {
    to[0] = (char)(value & 255);
    to[1] = (char)(value >> 8 & 255);
}

static void put32(char *to, uint32_t value) {
    put16(to, value & 0xFFFF);
    put16(to + 2, value >> 16);
}

static void put64(char *to, uint64_t value) {
    put32(to, (uint32_t)(value & UINT32_MAX));
    put32(to + 4, (uint32_t)(value >> 32));
}

static uint32_t get16(const char *from) {
    return (uint32_t)(unsigned char)from[0] | (uint32_t)(unsigned char)from[1] << 8;
}

static uint32_t get32(const char *from) { return get16(from) | get16(from + 2) << 16; }

static uint64_t get64(const char *from) {
    return (uint64_t)get32(from) | (uint64_t)get32(from + 4) << 32;
}

static char *put(char *to, Text text) {
    memcpy(to, text.start, (size_t)text.size);
    return to + text.size;
}

/* -- CRC-32, sixteen bytes at a time ------------------------------------------------------------ */

#define SLICES 16
#define POLYNOMIAL UINT32_C(0xEDB88320)

static uint32_t crc_tables[SLICES][256];

static void crc_prepare(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? POLYNOMIAL ^ crc >> 1 : crc >> 1;
        crc_tables[0][byte] = crc;
    }
    for (int slice = 1; slice < SLICES; slice++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = crc_tables[slice - 1][byte];
            crc_tables[slice][byte] = before >> 8 ^ crc_tables[0][before & 255];
        }
}

static uint32_t crc_word(uint32_t word, int slice) {
    return crc_tables[slice][word & 255] ^ crc_tables[slice - 1][word >> 8 & 255] ^
           crc_tables[slice - 2][word >> 16 & 255] ^ crc_tables[slice - 3][word >> 24];
}

static uint32_t crc_of(const char *data, Py_ssize_t size, uint32_t crc) {
    crc = ~crc;
    for (; size >= SLICES; size -= SLICES, data += SLICES)
        crc = crc_word(crc ^ get32(data), 15) ^ crc_word(get32(data + 4), 11) ^
              crc_word(get32(data + 8), 7) ^ crc_word(get32(data + 12), 3);
    for (; size > 0; size--, data++)
        crc = crc >> 8 ^ crc_tables[0][(crc ^ (unsigned char)*data) & 255];
    return ~crc;
}

/* -- what is given ------------------------------------------------------------------------------ */

static int text_of(PyObject *given, Text *text) {
    char *start;
    if (given == NULL || PyBytes_AsStringAndSize(given, &start, &text->size) < 0) return -1;
    text->start = start;
    return 0;
}

/* Subject, reply, headers and payload of a publish; -1 with an error set. */
static int publish_of(PyObject *batch, Py_ssize_t at, Text parts[4]) {
    PyObject *item = PyList_GetItem(batch, at);
    if (item == NULL) return -1;
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "a publish is a tuple");
        return -1;
    }
    for (int part = 0; part < 4; part++)
        if (text_of(PyTuple_GetItem(item, part), &parts[part]) < 0) return -1;
    return 0;
}

/* The place of the first `wanted` in a text; -1 if it is not there. */
static Py_ssize_t find(const char *data, Py_ssize_t size, const char *wanted, Py_ssize_t length) {
    const char *at = data;
    while (size - (at - data) >= length) {
        at = memchr(at, wanted[0], (size_t)(size - (at - data) - length + 1));
        if (at == NULL) return -1;
        if (memcmp(at, wanted, (size_t)length) == 0) return at - data;
        at++;
    }
    return -1;
}

/* The id of a header block that holds nothing else; of size 0 if it is no such block. */
static Text id_of(const char *block, Py_ssize_t size) {
    Text id = {block, 0};
    Py_ssize_t begin = TEXT_BYTES(ONLY_ID), end = size - 4;
    if (size < begin + 4 || memcmp(block, ONLY_ID, (size_t)begin) != 0) return id;
    if (find(block + begin, size - begin, "\r\n", 2) != end - begin) return id;
    while (begin < end && block[begin] == ' ') begin++;
    id.start = block + begin;
    id.size = end - begin;
    return id;
}

/* An `array` of a column of numbers. */
static PyObject *column(const char *kind, const void *data, Py_ssize_t size) {
    PyObject *raw = PyBytes_FromStringAndSize(data, size);
    if (raw == NULL) return NULL;
    PyObject *found = PyObject_CallFunction(array_type, "sO", kind, raw);
    Py_DECREF(raw);
    return found;
}

/* -- publishes ---------------------------------------------------------------------------------- */

/* read_publishes(batch) */
static PyObject *read_publishes(PyObject *module, PyObject *batch) {
    (void)module;
    if (!PyList_Check(batch)) {
        PyErr_SetString(PyExc_TypeError, "a batch is a list");
        return NULL;
    }
    Py_ssize_t count = PyList_Size(batch), total = 0, headers_max = 0, content_max = 0;
    Text parts[4];
    if (count == 0) Py_RETURN_NONE;
    if (publish_of(batch, 0, parts) < 0) return NULL;
    int headed = parts[2].size > 0;
    PyObject *ids = PyList_New(headed ? count : 0);
    if (ids == NULL) return NULL;
    for (Py_ssize_t at = 0; at < count; at++) {
        if (publish_of(batch, at, parts) < 0) goto failed;
        Py_ssize_t headers = parts[2].size, content = headers + parts[3].size;
        if (find(parts[1].start, parts[1].size, FAST_INGEST, TEXT_BYTES(FAST_INGEST)) >= 0)
            goto different;
        if ((headers > 0) != headed) goto different;
        if (headed) {
            Text id = id_of(parts[2].start, headers);
            if (id.size == 0) goto different;
            PyObject *made = PyBytes_FromStringAndSize(id.start, id.size);
            if (made == NULL || PyList_SetItem(ids, at, made) < 0) goto failed;
        }
        if (headers > headers_max) headers_max = headers;
        if (content > content_max) content_max = content;
        total += parts[0].size + content;
    }
    return Py_BuildValue("(Nnnn)", ids, total, headers_max, content_max);
different:
    Py_DECREF(ids);
    Py_RETURN_NONE;
failed:
    Py_XDECREF(ids);
    return NULL;
}

/* One more record in a frame; -1 with an error set where that is too large. */
static int add_record(Py_ssize_t *total, Py_ssize_t subject, Py_ssize_t headers,
                      Py_ssize_t payload) {
    int fits = subject <= SUBJECT_BYTES_MAX && headers <= BYTES_MAX && payload <= BYTES_MAX;
    if (fits) *total += RECORD_OVERHEAD + subject + headers + payload;
    if (fits && *total <= BYTES_MAX) return 0;
    PyErr_SetString(PyExc_ValueError, "a frame of messages is too large");
    return -1;
}

/* What a frame's records take; -1 with an error set. */
static Py_ssize_t measure(PyObject *batch, Py_ssize_t count) {
    Py_ssize_t total = 0;
    for (Py_ssize_t at = 0; at < count; at++) {
        Text parts[4];
        if (publish_of(batch, at, parts) < 0) return -1;
        if (add_record(&total, parts[0].size, parts[2].size, parts[3].size) < 0) return -1;
    }
    return total;
}

typedef struct {
    uint32_t *offsets, *crcs, *sizes; /* of one allocation */
    PyObject *subjects;
} Found;

static int found_begin(Found *found, Py_ssize_t count) {
    found->subjects = PyList_New(count);
    found->offsets = PyMem_Malloc((size_t)count * 3 * sizeof(uint32_t) + 1);
    if (found->subjects == NULL || found->offsets == NULL) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        Py_CLEAR(found->subjects);
        PyMem_Free(found->offsets);
        return -1;
    }
    found->crcs = found->offsets + count;
    found->sizes = found->crcs + count;
    return 0;
}

static void found_end(Found *found) {
    PyMem_Free(found->offsets);
    Py_CLEAR(found->subjects);
}

/* What is stored of a message. */
typedef struct {
    uint64_t seq, time_ns;
    Text subject, headers, payload;
} Message;

/* A message as the record `at` of its frame; where the next one begins, NULL with an error set. The
 * subject is the first bytes that its tuple has. */
static char *write_record(const Message *message, PyObject *subject, Py_ssize_t at, char *begin,
                          char *to, Found *found) {
    Py_ssize_t headers = message->headers.size;
    Py_ssize_t length =
        RECORD_OVERHEAD + message->subject.size + headers + message->payload.size;
    put32(to + 4, (uint32_t)length);
    put64(to + 8, message->seq);
    put64(to + 16, message->time_ns);
    put16(to + 24, (uint32_t)message->subject.size);
    put32(to + 26, (uint32_t)headers);
    char *behind = put(to + RECORD_OVERHEAD, message->subject);
    behind = put(put(behind, message->headers), message->payload);
    uint32_t crc = crc_of(to + 4, length - 4, 0);
    put32(to, crc);
    found->offsets[at] = (uint32_t)(to - begin);
    found->crcs[at] = crc;
    found->sizes[at] = (uint32_t)length + (headers ? HEADED_BYTES : 0);
    return PyList_SetItem(found->subjects, at, Py_NewRef(subject)) < 0 ? NULL : behind;
}

/* The batch as records at `to`, which has room for what was measured. */
static int write_records(PyObject *batch, Py_ssize_t count, uint64_t seq, uint64_t time_ns,
                         char *begin, char *to, Found *found) {
    for (Py_ssize_t at = 0; at < count; at++, seq++) {
        Text parts[4];
        if (publish_of(batch, at, parts) < 0) return -1;
        Message message = {seq, time_ns, parts[0], parts[2], parts[3]};
        PyObject *subject = PyTuple_GetItem(PyList_GetItem(batch, at), 0);
        to = write_record(&message, subject, at, begin, to, found);
        if (to == NULL) return -1;
    }
    return 0;
}

/* The header of a frame whose records stand behind it. */
static void write_head(char *frame, Py_ssize_t count, uint64_t first_seq, uint64_t last_seq,
                       Py_ssize_t length) {
    put32(frame, FRAME_MAGIC);
    put16(frame + 4, FRAME_VERSION);
    put16(frame + 6, 0);
    put32(frame + 8, (uint32_t)count);
    put64(frame + 12, first_seq);
    put64(frame + 20, last_seq);
    put32(frame + 28, (uint32_t)length);
    uint32_t crc = crc_of(frame, FRAME_HEADER_BYTES - 4, 0);
    put32(frame + 32, crc_of(frame + FRAME_HEADER_BYTES, length, crc));
}

/* encode_publishes(head, batch, first_seq, time_ns) -> (buffer, offsets, crcs, sizes, subjects) */
static PyObject *encode_publishes(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *head_given, *batch, *buffer = NULL, *made = NULL;
    unsigned long long first_seq;
    long long time_ns;
    Text head;
    Found found;
    if (!PyArg_ParseTuple(args, "SO!KL:encode_publishes", &head_given, &PyList_Type, &batch,
                          &first_seq, &time_ns) ||
        text_of(head_given, &head) < 0)
        return NULL;
    Py_ssize_t count = PyList_Size(batch);
    if (count < 1 || count > BYTES_MAX / RECORD_OVERHEAD || head.size > BYTES_MAX) {
        PyErr_SetString(PyExc_ValueError, "a frame has messages, and not too many");
        return NULL;
    }
    if (found_begin(&found, count) < 0) return NULL;
    Py_ssize_t length = measure(batch, count);
    if (length < 0) goto done;
    buffer = PyBytes_FromStringAndSize(NULL, head.size + FRAME_HEADER_BYTES + length);
    if (buffer == NULL) goto done;
    char *begin = PyBytes_AsString(buffer), *frame = begin + head.size;
    char *records = frame + FRAME_HEADER_BYTES;
    memcpy(begin, head.start, (size_t)head.size);
    if (write_records(batch, count, first_seq, (uint64_t)time_ns, begin, records, &found) < 0)
        goto done;
    write_head(frame, count, first_seq, first_seq + (uint64_t)count - 1, length);
    Py_ssize_t bytes = count * (Py_ssize_t)sizeof(uint32_t);
    PyObject *offsets = column("I", found.offsets, bytes);
    PyObject *crcs = column("I", found.crcs, bytes);
    PyObject *sizes = column("I", found.sizes, bytes);
    if (offsets != NULL && crcs != NULL && sizes != NULL)
        made = PyTuple_Pack(5, buffer, offsets, crcs, sizes, found.subjects);
    Py_XDECREF(offsets);
    Py_XDECREF(crcs);
    Py_XDECREF(sizes);
done:
    found_end(&found);
    Py_XDECREF(buffer);
    return made;
}

/* -- messages with sequences and times of their own ---------------------------------------------- */

/* The message of a row, whose numbers are looked at without running other code; -1 with an error
 * set. */
static int row_at(PyObject *rows, Py_ssize_t at, Message *message) {
    PyObject *row = PyList_GetItem(rows, at);
    if (row == NULL) return -1;
    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "a message is a tuple");
        return -1;
    }
    PyObject *seq = PyTuple_GetItem(row, 0), *time = PyTuple_GetItem(row, 1);
    if (seq == NULL || time == NULL) return -1;
    if (!PyLong_Check(seq) || !PyLong_Check(time)) {
        PyErr_SetString(PyExc_TypeError, "sequences and times are numbers");
        return -1;
    }
    message->seq = PyLong_AsUnsignedLongLong(seq);
    message->time_ns = (uint64_t)PyLong_AsLongLong(time);
    if (PyErr_Occurred()) return -1;
    Text *parts[3] = {&message->subject, &message->headers, &message->payload};
    for (int part = 0; part < 3; part++)
        if (text_of(PyTuple_GetItem(row, 2 + part), parts[part]) < 0) return -1;
    return 0;
}

/* The rows as records at `to`, their sequences and then their times as numbers; -1 with an error
 * set. */
static int write_rows(PyObject *rows, Py_ssize_t count, char *begin, char *to, Found *found,
                      uint64_t *numbers) {
    for (Py_ssize_t at = 0; at < count; at++) {
        Message message;
        if (row_at(rows, at, &message) < 0) return -1;
        PyObject *subject = PyTuple_GetItem(PyList_GetItem(rows, at), 2);
        to = write_record(&message, subject, at, begin, to, found);
        if (to == NULL) return -1;
        numbers[at] = message.seq;
        numbers[count + at] = message.time_ns;
    }
    return 0;
}

/* (offsets, crcs, sizes, seqs, times, subjects); `numbers` are sequences, then times. */
static PyObject *columns_of(const Found *found, const uint64_t *numbers, Py_ssize_t count) {
    PyObject *columns[5], *made = NULL;
    Py_ssize_t small = count * (Py_ssize_t)sizeof(uint32_t), large = 2 * small;
    columns[0] = column("I", found->offsets, small);
    columns[1] = column("I", found->crcs, small);
    columns[2] = column("I", found->sizes, small);
    columns[3] = column("Q", numbers, large);
    columns[4] = column("q", numbers + count, large);
    int whole = 1;
    for (int one = 0; one < 5; one++) whole = whole && columns[one] != NULL;
    if (whole)
        made = PyTuple_Pack(6, columns[0], columns[1], columns[2], columns[3], columns[4],
                            found->subjects);
    for (int one = 0; one < 5; one++) Py_XDECREF(columns[one]);
    return made;
}

static uint64_t *numbers_begin(Py_ssize_t count) {
    uint64_t *numbers = PyMem_Malloc((size_t)count * 2 * sizeof(uint64_t) + 1);
    if (numbers == NULL) PyErr_NoMemory();
    return numbers;
}

/* encode_rows(head, rows) -> (buffer, (offsets, crcs, sizes, seqs, times, subjects)) */
static PyObject *encode_rows(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *head_given, *rows, *buffer = NULL, *columns = NULL, *made = NULL;
    Text head;
    Found found;
    if (!PyArg_ParseTuple(args, "SO!:encode_rows", &head_given, &PyList_Type, &rows) ||
        text_of(head_given, &head) < 0)
        return NULL;
    Py_ssize_t count = PyList_Size(rows), length = 0;
    if (count < 1 || count > BYTES_MAX / RECORD_OVERHEAD || head.size > BYTES_MAX) {
        PyErr_SetString(PyExc_ValueError, "a frame has messages, and not too many");
        return NULL;
    }
    uint64_t *numbers = numbers_begin(count);
    if (numbers == NULL) return NULL;
    if (found_begin(&found, count) < 0) {
        PyMem_Free(numbers);
        return NULL;
    }
    for (Py_ssize_t at = 0; at < count; at++) {
        Message message;
        if (row_at(rows, at, &message) < 0) goto done;
        Py_ssize_t subject = message.subject.size, headers = message.headers.size;
        if (add_record(&length, subject, headers, message.payload.size) < 0) goto done;
    }
    buffer = PyBytes_FromStringAndSize(NULL, head.size + FRAME_HEADER_BYTES + length);
    if (buffer == NULL) goto done;
    char *begin = PyBytes_AsString(buffer), *frame = put(begin, head);
    if (write_rows(rows, count, begin, frame + FRAME_HEADER_BYTES, &found, numbers) < 0) goto done;
    write_head(frame, count, numbers[0], numbers[count - 1], length);
    columns = columns_of(&found, numbers, count);
    if (columns != NULL) made = PyTuple_Pack(2, buffer, columns);
done:
    found_end(&found);
    PyMem_Free(numbers);
    Py_XDECREF(columns);
    Py_XDECREF(buffer);
    return made;
}

/* -- records ------------------------------------------------------------------------------------ */

typedef struct {
    uint32_t crc, length, subject, headers;
    uint64_t seq, time_ns;
} Head;

/* The record at a place, all of which is in the range; -1 with an error set. */
static int head_at(const char *data, Py_ssize_t at, Py_ssize_t end, Head *head) {
    if (end - at < RECORD_OVERHEAD) {
        PyErr_SetString(PyExc_ValueError, "records do not end with the bytes");
        return -1;
    }
    data += at;
    head->crc = get32(data);
    head->length = get32(data + 4);
    head->seq = get64(data + 8);
    head->time_ns = get64(data + 16);
    head->subject = get16(data + 24);
    head->headers = get32(data + 26);
    int64_t parts = (int64_t)RECORD_OVERHEAD + head->subject + head->headers;
    if (head->length < parts || head->length > end - at) {
        PyErr_SetString(PyExc_ValueError,
                        "a record is longer than the bytes, or shorter than its parts");
        return -1;
    }
    return 0;
}

/* (buffer, start, end), checked, and how many records there are; -1 with an error set. */
static Py_ssize_t range_of(PyObject *args, Text *buffer, Py_ssize_t *start, Py_ssize_t *end) {
    PyObject *given;
    if (!PyArg_ParseTuple(args, "Snn", &given, start, end) || text_of(given, buffer) < 0) return -1;
    if (*start < 0 || *end < *start || *end > buffer->size) {
        PyErr_SetString(PyExc_ValueError, "no such range");
        return -1;
    }
    Py_ssize_t count = 0;
    Head head;
    for (Py_ssize_t at = *start; at < *end; at += (Py_ssize_t)head.length, count++)
        if (head_at(buffer->start, at, *end, &head) < 0) return -1;
    return count;
}

/* read_columns(buffer, start, end) -> (offsets, crcs, sizes, seqs, times, subjects) */
static PyObject *read_columns(PyObject *module, PyObject *args) {
    (void)module;
    Text buffer;
    Py_ssize_t start, end, count = range_of(args, &buffer, &start, &end);
    Found found;
    if (count < 0) return NULL;
    if (end > UINT32_MAX - HEADED_BYTES) {
        PyErr_SetString(PyExc_ValueError, "too many bytes");
        return NULL;
    }
    if (found_begin(&found, count) < 0) return NULL;
    PyObject *made = NULL;
    uint64_t *numbers = numbers_begin(count);
    if (numbers == NULL) goto done;
    Py_ssize_t at = start;
    for (Py_ssize_t row = 0; row < count; row++) {
        Head head;
        if (head_at(buffer.start, at, end, &head) < 0) goto done;
        found.offsets[row] = (uint32_t)at;
        found.crcs[row] = head.crc;
        found.sizes[row] = head.length + (head.headers ? HEADED_BYTES : 0);
        numbers[row] = head.seq;
        numbers[count + row] = head.time_ns;
        PyObject *subject =
            PyBytes_FromStringAndSize(buffer.start + at + RECORD_OVERHEAD, head.subject);
        if (subject == NULL || PyList_SetItem(found.subjects, row, subject) < 0) goto done;
        at += (Py_ssize_t)head.length;
    }
    made = columns_of(&found, numbers, count);
done:
    PyMem_Free(numbers);
    found_end(&found);
    return made;
}

/* read_ids(buffer, start, end) */
static PyObject *read_ids(PyObject *module, PyObject *args) {
    (void)module;
    Text buffer;
    Py_ssize_t start, end, count = range_of(args, &buffer, &start, &end);
    if (count < 0) return NULL;
    PyObject *ids = PyList_New(count);
    if (ids == NULL) return NULL;
    Py_ssize_t at = start;
    for (Py_ssize_t row = 0; row < count; row++) {
        Head head;
        if (head_at(buffer.start, at, end, &head) < 0) goto failed;
        Text id = id_of(buffer.start + at + RECORD_OVERHEAD + head.subject, head.headers);
        if (id.size == 0) {
            Py_DECREF(ids);
            return PyList_New(0);
        }
        PyObject *made = PyBytes_FromStringAndSize(id.start, id.size);
        if (made == NULL || PyList_SetItem(ids, row, made) < 0) goto failed;
        at += (Py_ssize_t)head.length;
    }
    return ids;
failed:
    Py_DECREF(ids);
    return NULL;
}

/* -- archives ----------------------------------------------------------------------------------- */

#define ENTRY_BYTES_MIN 64 /* more than the numbers of an entry take */
#define TIME_BYTES 9
#define VARINT_BYTES_MAX 10

/* A number of seven bits a byte, the lowest first; how many bytes it takes, 0 for none of 64 bits.
 * There are at least VARINT_BYTES_MAX bytes. */
static int varint_of(const char *from, uint64_t *number) {
    uint64_t value = 0;
    for (int at = 0; at < VARINT_BYTES_MAX; at++) {
        uint64_t byte = (unsigned char)from[at];
        if (at == VARINT_BYTES_MAX - 1 && byte > 1) return 0;
        value |= (byte & 0x7F) << 7 * at;
        if (byte < 0x80) {
            *number = value;
            return at + 1;
        }
    }
    return 0;
}

/* The message of an entry that begins there, of the form that nearly all have, and how many bytes
 * it takes; 0 for another one, or one that is not all there. */
static Py_ssize_t entry_of(const char *from, Py_ssize_t left, uint64_t last_seq,
                           uint64_t body_max, Message *message) {
    uint64_t time, numbers[3];
    if (left < ENTRY_BYTES_MIN || (unsigned char)from[0] >= 0x80) return 0;
    Py_ssize_t name = from[0], at = 1;
    if (varint_of(from + at, &time) != TIME_BYTES) return 0;
    at += TIME_BYTES;
    for (int one = 0; one < 3; one++) {
        int size = varint_of(from + at, &numbers[one]);
        if (!size) return 0;
        at += size;
    }
    uint64_t headers = numbers[1], payload = numbers[2];
    if (numbers[0] <= last_seq || headers > body_max || payload > body_max - headers) return 0;
    if (headers + payload + (uint64_t)(at + name) > (uint64_t)left) return 0;
    message->seq = numbers[0];
    message->time_ns = time >> 1 ^ (~(time & 1) + 1);
    message->subject = (Text){from + at, name};
    message->headers = (Text){from + at + name, (Py_ssize_t)headers};
    message->payload = (Text){from + at + name + headers, (Py_ssize_t)payload};
    return at + name + (Py_ssize_t)(headers + payload);
}

static int varint_size(uint64_t value) {
    int size = 1;
    for (; value >= 0x80; value >>= 7) size++;
    return size;
}

static char *put_varint(char *to, uint64_t value) {
    for (; value >= 0x80; value >>= 7) *to++ = (char)((value & 0x7F) | 0x80);
    *to = (char)value;
    return to + 1;
}

/* The numbers that an entry begins with. */
static void entry_numbers(const Message *message, uint64_t numbers[5]) {
    numbers[0] = (uint64_t)message->subject.size;
    numbers[1] = message->time_ns << 1 ^ (~(message->time_ns >> 63) + 1);
    numbers[2] = message->seq;
    numbers[3] = (uint64_t)message->headers.size;
    numbers[4] = (uint64_t)message->payload.size;
}

/* entries_bytes(rows) */
static PyObject *entries_bytes(PyObject *module, PyObject *rows) {
    (void)module;
    if (!PyList_Check(rows)) {
        PyErr_SetString(PyExc_TypeError, "messages are a list");
        return NULL;
    }
    Py_ssize_t count = PyList_Size(rows), total = 0;
    Message message;
    uint64_t numbers[5];
    for (Py_ssize_t at = 0; at < count; at++) {
        if (row_at(rows, at, &message) < 0) return NULL;
        const Text *parts[3] = {&message.subject, &message.headers, &message.payload};
        for (int part = 0; part < 3; part++) {
            if (parts[part]->size > BYTES_MAX || total > BYTES_MAX) {
                PyErr_SetString(PyExc_ValueError, "the entries are too large");
                return NULL;
            }
            total += parts[part]->size;
        }
        entry_numbers(&message, numbers);
        for (int one = 0; one < 5; one++) total += varint_size(numbers[one]);
    }
    PyObject *made = PyBytes_FromStringAndSize(NULL, total);
    if (made == NULL) return NULL;
    char *to = PyBytes_AsString(made);
    for (Py_ssize_t at = 0; at < count; at++) {
        if (row_at(rows, at, &message) < 0) {
            Py_DECREF(made);
            return NULL;
        }
        entry_numbers(&message, numbers);
        for (int one = 0; one < 5; one++) to = put_varint(to, numbers[one]);
        to = put(put(put(to, message.subject), message.headers), message.payload);
    }
    return made;
}

/* read_messages(data, begin, last_seq, body_bytes_max, most) -> (rows, end) */
static PyObject *read_messages(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given;
    Text data;
    Py_ssize_t at, body_max, most;
    unsigned long long last_seq;
    if (!PyArg_ParseTuple(args, "SnKnn:read_messages", &given, &at, &last_seq, &body_max, &most) ||
        text_of(given, &data) < 0)
        return NULL;
    if (at < 0 || at > data.size || body_max < 0 || body_max > BYTES_MAX) {
        PyErr_SetString(PyExc_ValueError, "no such range");
        return NULL;
    }
    PyObject *rows = PyList_New(0);
    if (rows == NULL) return NULL;
    for (Py_ssize_t count = 0; count < most; count++) {
        Message one;
        Py_ssize_t size =
            entry_of(data.start + at, data.size - at, last_seq, (uint64_t)body_max, &one);
        if (size == 0) break;
        PyObject *row = Py_BuildValue(
            "(KLy#y#y#)", (unsigned long long)one.seq, (long long)one.time_ns, one.subject.start,
            one.subject.size, one.headers.start, one.headers.size, one.payload.start,
            one.payload.size);
        int added = row == NULL ? -1 : PyList_Append(rows, row);
        Py_XDECREF(row);
        if (added < 0) {
            Py_DECREF(rows);
            return NULL;
        }
        last_seq = one.seq;
        at += size;
    }
    return Py_BuildValue("(Nn)", rows, at);
}

/* -- ids and acknowledgements ------------------------------------------------------------------- */

/* The bytes of a list's items together; -1 with an error set for one that is too long. */
static Py_ssize_t list_bytes(PyObject *list, Py_ssize_t item_max) {
    Py_ssize_t count = PyList_Size(list), total = 0;
    for (Py_ssize_t at = 0; at < count; at++) {
        Text one;
        if (text_of(PyList_GetItem(list, at), &one) < 0) return -1;
        if (one.size > item_max || total > BYTES_MAX) {
            PyErr_SetString(PyExc_ValueError, "an id is too long");
            return -1;
        }
        total += one.size;
    }
    return total;
}

/* A number of a sequence; 0 for one that no record has, -1 with an error set. */
static int number_at(PyObject *sequence, Py_ssize_t at, uint64_t *number) {
    PyObject *item = PySequence_GetItem(sequence, at);
    if (item == NULL) return -1;
    *number = PyLong_AsUnsignedLongLong(item);
    Py_DECREF(item);
    if (*number != UINT64_MAX || !PyErr_Occurred()) return 1;
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
    PyErr_Clear();
    return 0;
}

/* The message of a record that is to have such a sequence and such a length; NULL without an error
 * where there is none. */
static PyObject *row_of(const char *record, uint64_t seq, uint64_t length) {
    uint64_t subject = get16(record + 24), headers = get32(record + 26);
    uint64_t parts = RECORD_OVERHEAD + subject + headers;
    if (get32(record + 4) != length || get64(record + 8) != seq || parts > length) return NULL;
    if (crc_of(record + 4, (Py_ssize_t)length - 4, 0) != get32(record)) return NULL;
    const char *begin = record + RECORD_OVERHEAD;
    return Py_BuildValue("(KLy#y#y#)", (unsigned long long)seq, (long long)get64(record + 16),
                         begin, (Py_ssize_t)subject, begin + subject, (Py_ssize_t)headers,
                         begin + subject + headers, (Py_ssize_t)(length - parts));
}

/* read_rows(buffer, begin, seqs, offsets, lengths, bytes_max) */
static PyObject *read_rows(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given, *of[3];
    Text buffer;
    unsigned long long begin;
    long long left;
    if (!PyArg_ParseTuple(args, "SKOOOL", &given, &begin, &of[0], &of[1], &of[2], &left))
        return NULL;
    if (text_of(given, &buffer) < 0) return NULL;
    Py_ssize_t count = PY_SSIZE_T_MAX;
    for (int one = 0; one < 3; one++) {
        Py_ssize_t size = PySequence_Size(of[one]);
        if (size < 0) return NULL;
        if (size < count) count = size;
    }
    PyObject *rows = PyList_New(0);
    if (rows == NULL) return NULL;
    uint64_t size = (uint64_t)buffer.size;
    for (Py_ssize_t at = 0; at < count; at++) {
        uint64_t numbers[3] = {0, 0, 0};
        int whole = 1;
        for (int one = 0; one < 3 && whole > 0; one++)
            whole = number_at(of[one], at, &numbers[one]);
        if (whole < 0) goto failed;
        if (!whole || numbers[1] < begin) break;
        uint64_t seq = numbers[0], start = numbers[1] - begin, length = numbers[2];
        if (start > size || length < RECORD_OVERHEAD || length > size - start) break;
        if (left < 0 || length > (uint64_t)left) break;
        left -= (long long)length;
        PyObject *row = row_of(buffer.start + start, seq, length);
        if (row == NULL) {
            if (PyErr_Occurred()) goto failed;
            break;
        }
        int added = PyList_Append(rows, row);
        Py_DECREF(row);
        if (added < 0) goto failed;
    }
    return rows;
failed:
    Py_DECREF(rows);
    return NULL;
}

/* pack_ids(ids, first_seq, time_ns) */
static PyObject *pack_ids(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *ids;
    unsigned long long seq;
    long long time_ns;
    if (!PyArg_ParseTuple(args, "O!KL:pack_ids", &PyList_Type, &ids, &seq, &time_ns)) return NULL;
    Py_ssize_t count = PyList_Size(ids), total = list_bytes(ids, ID_BYTES_MAX);
    if (total < 0) return NULL;
    PyObject *made = PyBytes_FromStringAndSize(NULL, total + count * ID_OVERHEAD);
    if (made == NULL) return NULL;
    char *to = PyBytes_AsString(made);
    for (Py_ssize_t at = 0; at < count; at++, seq++) {
        Text id;
        if (text_of(PyList_GetItem(ids, at), &id) < 0) {
            Py_DECREF(made);
            return NULL;
        }
        put64(to, seq);
        put64(to + 8, (uint64_t)time_ns);
        put16(to + 16, (uint32_t)id.size);
        memcpy(to + ID_OVERHEAD, id.start, (size_t)id.size);
        to += ID_OVERHEAD + id.size;
    }
    return made;
}

static char *put_decimal(char *to, uint64_t value) {
    char digits[DIGITS_MAX];
    int count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (count) *to++ = digits[--count];
    return to;
}

static int decimals(uint64_t value) {
    int count = 1;
    while (value >= 10) {
        value /= 10;
        count++;
    }
    return count;
}

/* What all acknowledgements of a run share: verb, infix, head, tail; `around` bounds what one of
 * them takes beside its reply, or beside that and its own infix. */
typedef struct {
    Text words[4];
    Py_ssize_t around;
} AckForm;

static const Text line_end = {"\r\n", 2};

static int form_set(AckForm *form, PyObject *const given[4]) {
    form->around = 2 * DIGITS_MAX + 2 * line_end.size;
    for (int one = 0; one < 4; one++) {
        form->words[one] = (Text){"", 0};
        if (given[one] != NULL && text_of(given[one], &form->words[one]) < 0) return -1;
        if (form->words[one].size > SUBJECT_BYTES_MAX) {
            PyErr_SetString(PyExc_ValueError, "an acknowledgement is too long");
            return -1;
        }
        form->around += form->words[one].size;
    }
    return 0;
}

/* Words one into room for it; the place behind it. */
static char *ack_put(char *to, const AckForm *form, Text reply, Text infix, uint64_t seq) {
    const Text *words = form->words;
    to = put(put(put(to, words[0]), reply), infix);
    to = put_decimal(to, (uint64_t)(words[2].size + words[3].size + decimals(seq)));
    to = put(put_decimal(put(put(to, line_end), words[2]), seq), words[3]);
    return put(to, line_end);
}

/* ack_lines(replies, first_seq, verb, infix, (head, tail)) */
static PyObject *ack_lines(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *replies, *given[4];
    unsigned long long seq;
    AckForm form;
    if (!PyArg_ParseTuple(args, "O!KSS(SS):ack_lines", &PyList_Type, &replies, &seq, &given[0],
                          &given[1], &given[2], &given[3]) ||
        form_set(&form, given) < 0)
        return NULL;
    Py_ssize_t count = PyList_Size(replies), total = list_bytes(replies, BYTES_MAX);
    if (total < 0) return NULL;
    if (total > BYTES_MAX || count > (BYTES_MAX - total) / form.around) {
        PyErr_SetString(PyExc_ValueError, "too many acknowledgements");
        return NULL;
    }
    char *lines = PyMem_Malloc((size_t)(total + count * form.around) + 1), *to = lines;
    if (lines == NULL) return PyErr_NoMemory();
    for (Py_ssize_t at = 0; at < count; at++, seq++) {
        Text reply;
        if (text_of(PyList_GetItem(replies, at), &reply) < 0) {
            PyMem_Free(lines);
            return NULL;
        }
        to = ack_put(to, &form, reply, form.words[1], seq);
    }
    PyObject *made = PyBytes_FromStringAndSize(lines, to - lines);
    PyMem_Free(lines);
    return made;
}

/* The longest of what two lists of bytes have in a row; -1 with an error set. */
static Py_ssize_t rows_longest(PyObject *left, PyObject *right) {
    Py_ssize_t longest = 0, count = PyList_Size(left);
    if (PyList_Size(right) != count) {
        PyErr_SetString(PyExc_ValueError, "each acknowledgement has one reply and one infix");
        return -1;
    }
    for (Py_ssize_t at = 0; at < count; at++) {
        Text one, other;
        if (text_of(PyList_GetItem(left, at), &one) < 0) return -1;
        if (text_of(PyList_GetItem(right, at), &other) < 0) return -1;
        if (one.size > BYTES_MAX || other.size > BYTES_MAX) {
            PyErr_SetString(PyExc_ValueError, "an acknowledgement is too long");
            return -1;
        }
        if (one.size + other.size > longest) longest = one.size + other.size;
    }
    return longest;
}

/* ack_each(replies, first_seq, verb, infixes, (head, tail)) */
static PyObject *ack_each(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *replies, *infixes, *given[4] = {NULL, NULL, NULL, NULL};
    unsigned long long seq;
    AckForm form;
    if (!PyArg_ParseTuple(args, "O!KSO!(SS):ack_each", &PyList_Type, &replies, &seq, &given[0],
                          &PyList_Type, &infixes, &given[2], &given[3]) ||
        form_set(&form, given) < 0)
        return NULL;
    Py_ssize_t count = PyList_Size(replies), longest = rows_longest(replies, infixes);
    if (longest < 0) return NULL;
    PyObject *made = PyList_New(count);
    char *room = PyMem_Malloc((size_t)(longest + form.around) + 1);
    if (made == NULL || room == NULL) {
        if (made != NULL) PyErr_NoMemory();
        goto failed;
    }
    for (Py_ssize_t at = 0; at < count; at++, seq++) {
        Text reply, infix; /* the lists may have changed: a collection can run any code */
        if (text_of(PyList_GetItem(replies, at), &reply) < 0) goto failed;
        if (text_of(PyList_GetItem(infixes, at), &infix) < 0) goto failed;
        if (reply.size > longest || infix.size > longest - reply.size) {
            PyErr_SetString(PyExc_RuntimeError, "acknowledgements changed meanwhile");
            goto failed;
        }
        char *end = ack_put(room, &form, reply, infix, seq);
        PyObject *line = PyBytes_FromStringAndSize(room, end - room);
        if (line == NULL || PyList_SetItem(made, at, line) < 0) goto failed;
    }
    PyMem_Free(room);
    return made;
failed:
    PyMem_Free(room);
    Py_XDECREF(made);
    return NULL;
}

/* -- deliveries --------------------------------------------------------------------------------- */

static char *put_signed(char *to, int64_t value) {
    if (value >= 0) return put_decimal(to, (uint64_t)value);
    *to++ = '-';
    return put_decimal(to, -(uint64_t)value);
}

static Py_ssize_t signed_decimals(int64_t value) {
    return value >= 0 ? decimals((uint64_t)value) : 1 + decimals(-(uint64_t)value);
}

/* One delivery: numbers are those of its reply. NULL with an error set. */
static PyObject *tail_of(Text front, uint64_t seq, const int64_t numbers[3], Text payload) {
    Py_ssize_t length = front.size + decimals(seq) + 3 + 1 + decimals((uint64_t)payload.size) +
                        2 * line_end.size + payload.size;
    for (int one = 0; one < 3; one++) length += signed_decimals(numbers[one]);
    PyObject *made = PyBytes_FromStringAndSize(NULL, length);
    if (made == NULL) return NULL;
    char *to = put_decimal(put(PyBytes_AsString(made), front), seq);
    for (int one = 0; one < 3; one++) {
        *to++ = '.';
        to = put_signed(to, numbers[one]);
    }
    *to++ = ' ';
    to = put(put_decimal(to, (uint64_t)payload.size), line_end);
    put(put(to, payload), line_end);
    return made;
}

/* delivery_tails(front, rows, first, pending) */
static PyObject *delivery_tails(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given, *rows;
    long long first, pending;
    Text front;
    if (!PyArg_ParseTuple(args, "SO!LL", &given, &PyList_Type, &rows, &first, &pending) ||
        text_of(given, &front) < 0)
        return NULL;
    Py_ssize_t count = PyList_Size(rows);
    if (front.size > SUBJECT_BYTES_MAX || first > INT64_MAX - count || pending < INT64_MIN + count) {
        PyErr_SetString(PyExc_ValueError, "a delivery is too long");
        return NULL;
    }
    PyObject *made = PyList_New(count);
    if (made == NULL) return NULL;
    for (Py_ssize_t at = 0; at < count; at++) {
        Text payload;
        PyObject *row = PyList_GetItem(rows, at); /* None any more, if they changed meanwhile */
        if (row == NULL) goto failed;
        if (!PyTuple_Check(row)) {
            PyErr_SetString(PyExc_TypeError, "a message is a tuple");
            goto failed;
        }
        PyObject *seq = PyTuple_GetItem(row, 0), *time = PyTuple_GetItem(row, 1);
        if (seq == NULL || time == NULL || text_of(PyTuple_GetItem(row, 4), &payload) < 0)
            goto failed;
        uint64_t number = PyLong_AsUnsignedLongLong(seq);
        int64_t numbers[3] = {first + at, PyLong_AsLongLong(time), pending - at};
        if (PyErr_Occurred()) goto failed;
        if (payload.size > BYTES_MAX) {
            PyErr_SetString(PyExc_ValueError, "a delivery is too long");
            goto failed;
        }
        PyObject *tail = tail_of(front, number, numbers, payload);
        if (tail == NULL || PyList_SetItem(made, at, tail) < 0) goto failed;
    }
    return made;
failed:
    Py_DECREF(made);
    return NULL;
}

/* -- acknowledgements of consumers -------------------------------------------------------------- */

#define SEQ_TOKEN 5

/* Whether a payload is one of the words of a plain acknowledgement. */
static int is_plain(Text word) {
    return word.size == 0 || (word.size == 4 && memcmp(word.start, "+ACK", 4) == 0) ||
           (word.size == 3 && memcmp(word.start, "+OK", 3) == 0);
}

/* The sequence that a subject names; 0 if there is none. */
static uint64_t acked_seq(Text subject) {
    const char *at = subject.start, *end = at + subject.size;
    for (int token = 0; token < SEQ_TOKEN; token++) {
        at = memchr(at, '.', (size_t)(end - at));
        if (at == NULL) return 0;
        at++;
    }
    uint64_t seq = 0;
    for (; at < end && *at != '.'; at++) {
        uint64_t digit = (uint64_t)(unsigned char)*at - '0';
        if (digit > 9 || seq > (UINT64_MAX - digit) / 10) return 0;
        seq = 10 * seq + digit;
    }
    return seq;
}

static int append_new(PyObject *list, PyObject *item) {
    if (item == NULL) return -1;
    int added = PyList_Append(list, item);
    Py_DECREF(item);
    return added;
}

/* plain_acks(acks) -> (sequences, replies, places of all others) */
static PyObject *plain_acks(PyObject *module, PyObject *acks) {
    (void)module;
    if (!PyList_Check(acks)) {
        PyErr_SetString(PyExc_TypeError, "acknowledgements are a list");
        return NULL;
    }
    PyObject *seqs = PyList_New(0), *replies = PyList_New(0), *others = PyList_New(0);
    PyObject *made = NULL;
    if (seqs == NULL || replies == NULL || others == NULL) goto done;
    for (Py_ssize_t at = 0; at < PyList_Size(acks); at++) {
        Text parts[4];
        if (publish_of(acks, at, parts) < 0) goto done;
        if (!is_plain(parts[3])) {
            if (append_new(others, PyLong_FromSsize_t(at)) < 0) goto done;
            continue;
        }
        uint64_t seq = acked_seq(parts[0]);
        if (!seq) continue;
        PyObject *reply = PyTuple_GetItem(PyList_GetItem(acks, at), 1);
        if (reply == NULL || PyList_Append(replies, reply) < 0) goto done;
        if (append_new(seqs, PyLong_FromUnsignedLongLong(seq)) < 0) goto done;
    }
    made = PyTuple_Pack(3, seqs, replies, others);
done:
    Py_XDECREF(seqs);
    Py_XDECREF(replies);
    Py_XDECREF(others);
    return made;
}

/* -- the module --------------------------------------------------------------------------------- */

static PyMethodDef functions[] = {
    {"read_publishes", read_publishes, METH_O, "What a batch of publishes is like."},
    {"encode_publishes", encode_publishes, METH_VARARGS, "A frame of publishes, and its columns."},
    {"encode_rows", encode_rows, METH_VARARGS, "A frame of messages, and its columns."},
    {"read_columns", read_columns, METH_VARARGS, "The columns of records."},
    {"read_ids", read_ids, METH_VARARGS, "The ids of records."},
    {"read_rows", read_rows, METH_VARARGS, "The messages of records."},
    {"entries_bytes", entries_bytes, METH_O, "Messages as an archive has them."},
    {"read_messages", read_messages, METH_VARARGS, "The messages of an archive."},
    {"delivery_tails", delivery_tails, METH_VARARGS, "Deliveries from their replies on."},
    {"plain_acks", plain_acks, METH_O, "What is acknowledged, and by whom."},
    {"pack_ids", pack_ids, METH_VARARGS, "Ids as a snapshot has them."},
    {"ack_lines", ack_lines, METH_VARARGS, "Acknowledgements as a client reads them."},
    {"ack_each", ack_each, METH_VARARGS, "Acknowledgements as a client each reads them."},
    {NULL, NULL, 0, NULL},
};

static int module_fill(PyObject *module) {
    (void)module;
    crc_prepare();
    if (array_type != NULL) return 0;
    PyObject *library = PyImport_ImportModule("array");
    if (library == NULL) return -1;
    array_type = PyObject_GetAttrString(library, "array");
    Py_DECREF(library);
    return array_type == NULL ? -1 : 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_fill},
    {0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_columns",
    .m_doc = "Messages of a batch, all at once, compiled; see columns.",
    .m_methods = functions,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__columns(void) { return PyModuleDef_Init(&module_def); }
