/* A thread that syncs one file at a time, and needs nothing of the interpreter: who asked for it
 * goes on meanwhile. Against the limited API of Python 3.11, as _lane.c; where there is no eventfd
 * the module is empty.
 *
 * What the thread shares with the callers stands in one lock, which is held for a few instructions
 * only. It is made, and ends, with its object, which waits for a sync under way.
 */
#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#ifdef __linux__
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES (256 * 1024)

enum state { IDLE, WANTED, DONE, ENDING };

typedef struct {
    PyObject_HEAD
    pthread_mutex_t lock;
    pthread_cond_t turned; /* `state` is another one */
    pthread_t thread;
    _Atomic int state; /* one of those above */
    int is_begun;   /* the thread is there */
    pid_t owner;    /* whose thread it is: a forked process has none */
    int is_due;     /* a sync was begun, and its end not asked for */
    int file;
    int told;       /* the eventfd */
    int failure;    /* of the last sync: an error number, 0 for none */
    long long took_ns;
} Syncer;

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* -- the thread --------------------------------------------------------------------------------- */

static void *syncer_run(void *given) {
    Syncer *self = given;
    pthread_mutex_lock(&self->lock);
    for (;;) {
        while (self->state != WANTED && self->state != ENDING)
            pthread_cond_wait(&self->turned, &self->lock);
        if (self->state == ENDING) break;
        int file = self->file;
        pthread_mutex_unlock(&self->lock);
        long long began_ns = now_ns();
        int failure = fdatasync(file) == 0 ? 0 : errno;
        long long took_ns = now_ns() - began_ns;
        pthread_mutex_lock(&self->lock);
        self->failure = failure;
        self->took_ns = took_ns;
        self->state = DONE;
        pthread_cond_broadcast(&self->turned);
        uint64_t one = 1;
        /* It cannot fail: the count is at most 1. */
        ssize_t wrote = write(self->told, &one, sizeof one);
        (void)wrote;
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

/* Make the thread, in which no signal is handled; an error number. */
static int thread_begin(Syncer *self) {
    sigset_t all, before;
    pthread_attr_t how;
    int failure = pthread_attr_init(&how);
    if (failure) return failure;
    pthread_attr_setstacksize(&how, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failure = pthread_create(&self->thread, &how, syncer_run, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
    self->is_begun = failure == 0;
    return failure;
}

/* -- the object --------------------------------------------------------------------------------- */

static PyObject *syncer_make(PyTypeObject *type, PyObject *args, PyObject *named) {
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "", names)) return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Syncer *self = (Syncer *)allocate(type, 0);
    if (self == NULL) return NULL;
    self->owner = getpid();
    self->state = IDLE;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->turned, NULL);
    self->told = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    errno = self->told < 0 ? errno : thread_begin(self);
    if (!self->is_begun) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void thread_end(Syncer *self) {
    if (!self->is_begun || self->owner != getpid()) return;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->lock);
    while (self->state == WANTED) pthread_cond_wait(&self->turned, &self->lock);
    self->state = ENDING;
    pthread_cond_broadcast(&self->turned);
    pthread_mutex_unlock(&self->lock);
    pthread_join(self->thread, NULL);
    Py_END_ALLOW_THREADS
    self->is_begun = 0;
}

static void syncer_free(PyObject *object) {
    Syncer *self = (Syncer *)object;
    PyTypeObject *type = Py_TYPE(object);
    thread_end(self);
    if (self->told >= 0) close(self->told);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* begin(file) */
static PyObject *syncer_begin(PyObject *object, PyObject *number) {
    Syncer *self = (Syncer *)object;
    long file = PyLong_AsLong(number);
    if (file == -1 && PyErr_Occurred()) return NULL;
    if (file < 0 || file > INT_MAX) {
        PyErr_SetString(PyExc_ValueError, "no descriptor");
        return NULL;
    }
    int is_taken = 0;
    if (self->owner == getpid()) {
        pthread_mutex_lock(&self->lock);
        is_taken = self->state == IDLE; /* whoever ends the thread says so under the lock, too */
        if (is_taken) {
            self->file = (int)file;
            self->is_due = 1;
            self->state = WANTED;
            pthread_cond_broadcast(&self->turned);
        }
        pthread_mutex_unlock(&self->lock);
    }
    if (!is_taken) {
        PyErr_SetString(PyExc_RuntimeError,
                        "of another process, at its end, or there is a sync already");
        return NULL;
    }
    Py_RETURN_NONE;
}

/* end() */
static PyObject *syncer_end(PyObject *object, PyObject *unused) {
    Syncer *self = (Syncer *)object;
    (void)unused;
    if (self->owner != getpid() || !self->is_due) {
        PyErr_SetString(PyExc_RuntimeError, "there is no sync");
        return NULL;
    }
    self->is_due = 0;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->lock);
    while (self->state == WANTED) pthread_cond_wait(&self->turned, &self->lock);
    uint64_t told;
    ssize_t got = read(self->told, &told, sizeof told);
    (void)got;
    /* Who ends the thread meanwhile has said so, and waits for it. */
    if (self->state == DONE) self->state = IDLE;
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(self->failure);
}

/* close() */
static PyObject *syncer_close(PyObject *object, PyObject *unused) {
    (void)unused;
    thread_end((Syncer *)object);
    ((Syncer *)object)->state = ENDING;
    Py_RETURN_NONE;
}

static PyObject *syncer_fileno(PyObject *object, PyObject *unused) {
    (void)unused;
    return PyLong_FromLong(((Syncer *)object)->told);
}

static PyObject *syncer_took(PyObject *object, void *unused) {
    (void)unused;
    return PyLong_FromLongLong(((Syncer *)object)->took_ns);
}

static PyMethodDef syncer_methods[] = {
    {"begin", syncer_begin, METH_O, "Begin to sync a file."},
    {"end", syncer_end, METH_NOARGS, "Wait for that; an error number, 0 for none."},
    {"close", syncer_close, METH_NOARGS, "Let the thread end, when its sync is over."},
    {"fileno", syncer_fileno, METH_NOARGS, "What can be read when a sync is over."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef syncer_properties[] = {
    {"took_ns", syncer_took, NULL, "How long the last sync took.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot syncer_slots[] = {
    {Py_tp_doc, "See ports.Syncer."},
    {Py_tp_new, syncer_make},
    {Py_tp_dealloc, syncer_free},
    {Py_tp_methods, syncer_methods},
    {Py_tp_getset, syncer_properties},
    {0, NULL},
};

static PyType_Spec syncer_spec = {
    .name = "jsctl.broker.accel._syncs.Syncer",
    .basicsize = sizeof(Syncer),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = syncer_slots,
};

static int module_fill(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &syncer_spec, NULL);
    if (type == NULL) return -1;
    int done = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return done;
}
#else
static int module_fill(PyObject *module) {
    (void)module;
    return 0;
}
#endif

/* -- the module --------------------------------------------------------------------------------- */

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_fill},
    {0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_syncs",
    .m_doc = "Syncs beside the interpreter, compiled; see ports.Syncer.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__syncs(void) { return PyModuleDef_Init(&module_def); }
