/* What can be read of plain connections, and what is written to them, each in one call: the loops
 * of sockets.py, which are the reference. Against the limited API of Python 3.11, as _lane.c; where
 * there is no epoll the module is empty.
 *
 * Nothing here decides anything: whoever has to be closed, waits for its handshake, or takes less
 * than all is left to the caller. No call waits but that for the sockets, which lets go of the
 * interpreter's lock, as the writing does. Whatever the collector may run meanwhile, as with each
 * making of a tuple, finds that everything in use here has a reference of its own.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#ifdef __linux__
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#ifdef TIGHT /* so that tests come to the ends of everything */
#define EVENTS_MAX 3
#define WRITES_MAX 2
#else
#define EVENTS_MAX 512
#define WRITES_MAX 128
#endif
#define FAILED (-1)
#define LEFT 0
#define TAKEN 1
#define BROKEN 2

/* -- what is given ------------------------------------------------------------------------------ */

static int int_of(PyObject *given, int *number) {
    long found = PyLong_AsLong(given);
    if (found == -1 && PyErr_Occurred()) return -1;
    if (found < INT_MIN || found > INT_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a number is too large");
        return -1;
    }
    *number = (int)found;
    return 0;
}

/* What a dictionary has for a number; NULL without an error: nothing. */
static PyObject *value_of(PyObject *dict, int number) {
    PyObject *key = PyLong_FromLong(number);
    if (key == NULL) return NULL;
    PyObject *value = PyDict_GetItemWithError(dict, key);
    Py_DECREF(key);
    return Py_XNewRef(value);
}

/* Appends a new reference, which is given away even if that fails. */
static int list_take(PyObject *list, PyObject *item) {
    if (item == NULL) return -1;
    int done = PyList_Append(list, item);
    Py_DECREF(item);
    return done;
}

/* -- looks -------------------------------------------------------------------------------------- */

typedef struct {
    PyObject *chunks, *left;
    char *buffer;
    Py_ssize_t most, least; /* what one read may take, before and after a turn has enough */
    Py_ssize_t room, taken;
} Look;

/* Wait for sockets; how many there are in `events`, -1 with an error set. */
static int await(int epoll, int wait_ms, struct epoll_event *events) {
    int found, failure;
    Py_BEGIN_ALLOW_THREADS
    found = epoll_wait(epoll, events, EVENTS_MAX, wait_ms);
    failure = errno;
    Py_END_ALLOW_THREADS
    if (found >= 0) return found;
    if (failure == EINTR) return PyErr_CheckSignals() < 0 ? -1 : 0;
    errno = failure;
    PyErr_SetFromErrno(PyExc_OSError);
    return -1;
}

/* Read once. */
static int take(Look *look, int fd, PyObject *number) {
    size_t wanted = (size_t)(look->taken < look->room ? look->most : look->least);
    ssize_t size = recv(fd, look->buffer, wanted, MSG_DONTWAIT);
    if (size == 0) return LEFT;
    if (size < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? TAKEN : BROKEN;
    PyObject *chunk = PyBytes_FromStringAndSize(look->buffer, (Py_ssize_t)size);
    if (chunk == NULL) return FAILED;
    PyObject *pair = PyTuple_Pack(2, number, chunk);
    Py_DECREF(chunk);
    if (list_take(look->chunks, pair) < 0) return FAILED;
    look->taken += (Py_ssize_t)size;
    return TAKEN;
}

/* Do with one socket what can be done here; -1 with an error set. */
static int event_take(Look *look, PyObject *plain, const struct epoll_event *event) {
    uint32_t events = event->events;
    int fd = event->data.fd, done = LEFT;
    if (events == EPOLLIN) {
        PyObject *number = value_of(plain, fd);
        if (number == NULL && PyErr_Occurred()) return -1;
        if (number != NULL) done = take(look, fd, number);
        Py_XDECREF(number);
    }
    if (done == TAKEN || done == FAILED) return done == TAKEN ? 0 : -1;
    if (done == BROKEN) events = 0;
    if (look->left == NULL && (look->left = PyList_New(0)) == NULL) return -1;
    return list_take(look->left, Py_BuildValue("(iI)", fd, (unsigned int)events));
}

/* look(epoll, wait_ms, plain, chunks, buffer, least, room) */
static PyObject *sockets_look(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (count != 7 || !PyDict_Check(args[2]) || !PyList_Check(args[3])) {
        PyErr_SetString(PyExc_TypeError, "look takes two numbers, a dict, a list, a buffer, sizes");
        return NULL;
    }
    int epoll, wait_ms;
    if (int_of(args[0], &epoll) < 0 || int_of(args[1], &wait_ms) < 0) return NULL;
    Look look = {args[3], NULL, NULL, 0, PyLong_AsSsize_t(args[5]), PyLong_AsSsize_t(args[6]), 0};
    if (PyErr_Occurred()) return NULL;
    Py_buffer buffer;
    if (PyObject_GetBuffer(args[4], &buffer, PyBUF_WRITABLE) < 0) return NULL;
    look.buffer = buffer.buf;
    look.most = buffer.len;
    PyObject *made = NULL;
    if (look.least < 1 || look.least > look.most) {
        PyErr_SetString(PyExc_ValueError, "the buffer is smaller than the least read");
        goto done;
    }
    struct epoll_event events[EVENTS_MAX];
    int found = await(epoll, wait_ms, events);
    if (found < 0) goto done;
    for (int at = 0; at < found; at++)
        if (event_take(&look, args[2], &events[at]) < 0) goto done;
    made = Py_BuildValue("(nO)", look.taken, look.left == NULL ? Py_None : look.left);
done:
    Py_XDECREF(look.left);
    PyBuffer_Release(&buffer);
    return made;
}

/* -- sends -------------------------------------------------------------------------------------- */

typedef struct {
    PyObject *item;  /* (connection, bytes), kept */
    const char *start;
    Py_ssize_t size;
    ssize_t sent; /* -1: there is no straight way, or none behind what was not taken */
    int fd;
} Write;

/* -1 with an error set; the item is kept then, too. */
static int write_set(Write *write, PyObject *item, PyObject *direct) {
    write->item = Py_NewRef(item);
    write->fd = -1;
    write->sent = -1;
    if (!PyTuple_Check(item) || PyTuple_Size(item) != 2) {
        PyErr_SetString(PyExc_TypeError, "a write is a pair");
        return -1;
    }
    char *start;
    PyObject *number = PyTuple_GetItem(item, 0);
    if (!PyLong_CheckExact(number)) {
        PyErr_SetString(PyExc_TypeError, "a connection is a number");
        return -1;
    }
    if (PyBytes_AsStringAndSize(PyTuple_GetItem(item, 1), &start, &write->size) < 0) return -1;
    write->start = start;
    PyObject *fd = PyDict_GetItemWithError(direct, number);
    if (fd == NULL) return PyErr_Occurred() ? -1 : 0;
    return int_of(fd, &write->fd);
}

/* Without the lock. What is behind something that was not taken waits with it. */
static void writes_send(Write *writes, int count) {
    for (int at = 0, failures = 0; at < count; at++) {
        Write *one = &writes[at];
        int blocked = one->fd < 0;
        for (int before = 0; failures && before < at && !blocked; before++)
            blocked = writes[before].fd == one->fd && writes[before].sent < writes[before].size;
        if (blocked) continue;
        one->sent = send(one->fd, one->start, (size_t)one->size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (one->sent < one->size) failures = 1;
    }
}

/* Note what was not sent, whose connection has no straight way any more; -1 with an error set. */
static int write_rest(const Write *write, PyObject *direct, PyObject *rest) {
    if (write->sent == write->size) return 0;
    PyObject *number = PyTuple_GetItem(write->item, 0);
    if (write->fd >= 0) {
        int is_there = PyDict_Contains(direct, number);
        if (is_there < 0 || (is_there && PyDict_DelItem(direct, number) < 0)) return -1;
    }
    Py_ssize_t sent = write->sent < 0 ? 0 : (Py_ssize_t)write->sent;
    return list_take(rest, Py_BuildValue("(OOn)", number, PyTuple_GetItem(write->item, 1), sent));
}

/* The next writes of a list; how many, -1 with an error set. */
static Py_ssize_t writes_pass(PyObject *list, Py_ssize_t at, PyObject *direct, PyObject *rest) {
    Write writes[WRITES_MAX];
    int count = 0, failed = 0;
    while (count < WRITES_MAX && at + count < PyList_Size(list) && !failed) {
        PyObject *item = PyList_GetItem(list, at + count);
        failed = item == NULL || write_set(&writes[count++], item, direct) < 0;
    }
    if (!failed) {
        Py_BEGIN_ALLOW_THREADS
        writes_send(writes, count);
        Py_END_ALLOW_THREADS
    }
    for (int one = 0; one < count; one++) {
        if (!failed) failed = write_rest(&writes[one], direct, rest) < 0;
        Py_DECREF(writes[one].item);
    }
    return failed ? -1 : count;
}

/* send(writes, direct) */
static PyObject *sockets_send(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (count != 2 || !PyList_Check(args[0]) || !PyDict_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "send takes a list and a dict");
        return NULL;
    }
    PyObject *rest = PyList_New(0);
    if (rest == NULL) return NULL;
    for (Py_ssize_t at = 0; at < PyList_Size(args[0]);) {
        Py_ssize_t passed = writes_pass(args[0], at, args[1], rest);
        if (passed < 0) {
            Py_DECREF(rest);
            return NULL;
        }
        at += passed;
    }
    return rest;
}

static PyMethodDef functions[] = {
    {"look", (PyCFunction)(void (*)(void))sockets_look, METH_FASTCALL,
     "Wait for sockets, and read those of plain connections."},
    {"send", (PyCFunction)(void (*)(void))sockets_send, METH_FASTCALL,
     "Give what is written to the system."},
    {NULL, NULL, 0, NULL},
};
#else
static PyMethodDef functions[] = {{NULL, NULL, 0, NULL}};
#endif

/* -- the module --------------------------------------------------------------------------------- */

static PyModuleDef_Slot module_slots[] = {{0, NULL}};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_sockets",
    .m_doc = "Plain connections, read and written to in one call, compiled; see contract.",
    .m_methods = functions,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__sockets(void) { return PyModuleDef_Init(&module_def); }
