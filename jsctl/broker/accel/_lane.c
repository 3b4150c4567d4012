/* The lane's loop, compiled: the twin of pure.py, which is the reference. The contract is in
 * contract.py. One file against the limited API of Python 3.11, so that one build serves all later
 * versions.
 *
 * Nothing here decides anything: fans are made in Python, and whatever is not plain is left alone.
 * Every length is bounded before it is added, every allocation checked. While a call runs, the only
 * foreign code is `miss`, which may add targets and fans: arrays may have moved behind it, so that
 * nothing that points into them is kept across it. `state` refuses everything else.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define HEADERS 1
#define ANSWERS 2
#define HEARS 4
#define STOP (-1)
#define MESSAGE_COST 1
#define SINK_COST 4
#define SUBJECT_BYTES_MAX 512
#define LARGE_BYTES (64 * 1024)
#define FEW 16
#define OUTPUT_BYTES_MAX ((int64_t)32 << 20)
#define SUBJECTS_MAX 16384
#define LEGS_MAX 65536
#define FAMILIES_MAX 4096
#define DEPTHS_MAX 4
#define DOTS_MAX 31
#define KEPT_MAX 1024
#define SIZE_DIGITS_MAX 9
#define STOPS_MAX 8
#define TEXT_MAX (1 << 20)
#define SLOTS_MIN 64
#define PROBES_MAX 64
#define BUFFER_MIN 1024
#define LOT_FACTOR UINT64_C(6364136223846793005)
#define LOT_STEP UINT64_C(1442695040888963407)

static const char TRACE[] = "Nats-Trace-Dest";
#define TRACE_BYTES ((Py_ssize_t)sizeof(TRACE) - 1)

/* Bytes of an object that is kept alive beside them. */
typedef struct {
    PyObject *object;
    const char *start;
    Py_ssize_t size;
} Text;

typedef struct {
    int target;
    int headers;
    Text verb, header_verb, infix;
    PyObject *counted; /* members of groups */
    int64_t messages;  /* members of groups */
} Leg;

typedef struct {
    Leg *members;
    int count;
} Group;

typedef struct {
    Leg *legs;
    int *sinks;
    Group *groups;
    int leg_count, sink_count, group_count;
    int64_t weight;
    int64_t words; /* verbs and infixes of one message, to bound the output */
    PyObject *counted;
    int64_t messages, size, stripped;
} Fan;

/* A peer or a sink, and what it gets in one call. */
typedef struct {
    PyObject *peer;
    PyObject *rows;
    char *buffer;
    Py_ssize_t used, room;
    int64_t messages, size;
} Target;

typedef struct {
    PyObject *subject; /* NULL: free */
    const char *start;
    uint32_t size, hash;
    int fan;
} Slot;

/* Subjects that begin so, and have as many dots, have one fan. */
typedef struct {
    PyObject *prefix; /* NULL: free */
    const char *start;
    uint32_t size, hash, dots, kept;
    int fan;
} Family;

typedef struct {
    PyObject_HEAD
    Text verb, header_verb;
    Text stops[STOPS_MAX];
    int stop_count;
    Py_ssize_t line_max, payload_max;
    PyObject *miss, *nothing;
    uint64_t seed;
    Slot *slots;
    uint32_t slot_count, subject_count;
    Family *families;
    uint32_t family_room, family_count;
    uint8_t depths[DOTS_MAX + 1][DEPTHS_MAX], depth_counts[DOTS_MAX + 1]; /* by dots */
    Target *targets;
    int target_count, target_room;
    Fan *fans;
    int fan_count, fan_room;
    int *touched; /* fans that the call has used; as many as there may be fans */
    int touched_count;
    int64_t legs_known;
    int state;
} Table;

/* Targets and fans are only added while the arrays may move, and the rest only at rest. */
enum { AT_REST, AT_WORK, ASKING };

/* One message, as places in the input. */
typedef struct {
    const char *start, *subject, *reply, *tail, *body, *end;
    Py_ssize_t subject_size, reply_size;
    Py_ssize_t size, header_size; /* -1 without a header block */
    char stripped[SIZE_DIGITS_MAX + 4];
    Py_ssize_t stripped_size;
} Message;

/* -- texts ------------------------------------------------------------------------------------ */

static int text_set(Text *text, PyObject *object) {
    char *start;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(object, &start, &size) < 0) return -1;
    if (size > TEXT_MAX) {
        PyErr_SetString(PyExc_ValueError, "too long");
        return -1;
    }
    text->object = Py_NewRef(object);
    text->start = start;
    text->size = size;
    return 0;
}

static int begins(const char *data, Py_ssize_t size, const Text *text) {
    return size >= text->size && memcmp(data, text->start, (size_t)text->size) == 0;
}

/* -- what it knows ---------------------------------------------------------------------------- */

static void legs_free(Leg *legs, int count) {
    if (legs == NULL) return;
    for (int i = 0; i < count; i++) {
        Py_CLEAR(legs[i].verb.object);
        Py_CLEAR(legs[i].header_verb.object);
        Py_CLEAR(legs[i].infix.object);
        Py_CLEAR(legs[i].counted);
    }
    PyMem_Free(legs);
}

static void fan_free(Fan *fan) {
    legs_free(fan->legs, fan->leg_count);
    for (int i = 0; i < fan->group_count; i++)
        legs_free(fan->groups[i].members, fan->groups[i].count);
    PyMem_Free(fan->groups);
    PyMem_Free(fan->sinks);
    Py_CLEAR(fan->counted);
    memset(fan, 0, sizeof *fan);
}

/* What a call has collected is dropped. */
static void table_drop_output(Table *table) {
    for (int i = 0; i < table->target_count; i++) {
        Target *target = &table->targets[i];
        PyMem_Free(target->buffer);
        target->buffer = NULL;
        target->used = target->room = 0;
        target->messages = target->size = 0;
        Py_CLEAR(target->rows);
    }
    for (int i = 0; i < table->touched_count; i++) {
        Fan *fan = &table->fans[table->touched[i]];
        fan->messages = fan->size = fan->stripped = 0;
        for (int g = 0; g < fan->group_count; g++)
            for (int m = 0; m < fan->groups[g].count; m++) fan->groups[g].members[m].messages = 0;
    }
    table->touched_count = 0;
}

/* Releasing objects may run foreign code, which must not meet a half-cleared table: so everything
 * is taken out first, and the table refuses to work. */
static void table_forget(Table *table) {
    Slot *slots = table->slots;
    Family *families = table->families;
    Target *targets = table->targets;
    Fan *fans = table->fans;
    uint32_t slot_count = table->slot_count, family_room = table->family_room;
    int target_count = table->target_count, fan_count = table->fan_count;
    table->state = AT_WORK;
    table_drop_output(table);
    table->slots = NULL;
    table->families = NULL;
    table->targets = NULL;
    table->fans = NULL;
    PyMem_Free(table->touched);
    table->touched = NULL;
    table->slot_count = table->subject_count = 0;
    table->family_room = table->family_count = 0;
    memset(table->depth_counts, 0, sizeof table->depth_counts);
    table->target_count = table->target_room = table->fan_count = table->fan_room = 0;
    table->legs_known = 0;
    for (uint32_t i = 0; i < slot_count; i++) Py_CLEAR(slots[i].subject);
    PyMem_Free(slots);
    for (uint32_t i = 0; i < family_room; i++) Py_CLEAR(families[i].prefix);
    PyMem_Free(families);
    for (int i = 0; i < fan_count; i++) fan_free(&fans[i]);
    PyMem_Free(fans);
    for (int i = 0; i < target_count; i++) Py_CLEAR(targets[i].peer);
    PyMem_Free(targets);
    table->state = AT_REST;
}

static int legs_visit(Leg *legs, int count, visitproc visit, void *arg) {
    for (int i = 0; i < count; i++) Py_VISIT(legs[i].counted);
    return 0;
}

static int table_traverse(PyObject *self, visitproc visit, void *arg) {
    Table *table = (Table *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(table->miss);
    for (int i = 0; i < table->target_count; i++) {
        Py_VISIT(table->targets[i].peer);
        Py_VISIT(table->targets[i].rows);
    }
    for (int i = 0; i < table->fan_count; i++) {
        Fan *fan = &table->fans[i];
        Py_VISIT(fan->counted);
        for (int g = 0; g < fan->group_count; g++) {
            int found = legs_visit(fan->groups[g].members, fan->groups[g].count, visit, arg);
            if (found) return found;
        }
    }
    return 0;
}

static int table_clear_references(PyObject *self) {
    Table *table = (Table *)self;
    table_forget(table);
    Py_CLEAR(table->miss);
    return 0;
}

static void table_free(PyObject *self) {
    Table *table = (Table *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    table_forget(table);
    Py_CLEAR(table->miss);
    Py_CLEAR(table->nothing);
    Py_CLEAR(table->verb.object);
    Py_CLEAR(table->header_verb.object);
    for (int i = 0; i < table->stop_count; i++) Py_CLEAR(table->stops[i].object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *table_make(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *verb, *header_verb, *stops, *miss;
    Py_ssize_t line_max, payload_max;
    if (keywords != NULL && PyDict_Size(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "arguments are given by place");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "SSO!nnO:Table", &verb, &header_verb, &PyTuple_Type, &stops,
                          &line_max, &payload_max, &miss))
        return NULL;
    Py_ssize_t stop_count = PyTuple_Size(stops);
    if (stop_count > STOPS_MAX) {
        PyErr_SetString(PyExc_ValueError, "too many stops");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Table *table = (Table *)allocate(type, 0); /* zeroed */
    if (table == NULL) return NULL;
    table->line_max = line_max < 0 ? 0 : line_max > TEXT_MAX ? TEXT_MAX : line_max;
    table->payload_max = payload_max < LARGE_BYTES - 1 ? payload_max : LARGE_BYTES - 1;
    table->miss = Py_NewRef(miss);
    if (text_set(&table->verb, verb) < 0 || text_set(&table->header_verb, header_verb) < 0)
        goto failed;
    for (Py_ssize_t i = 0; i < stop_count; i++) {
        if (text_set(&table->stops[i], PyTuple_GetItem(stops, i)) < 0) goto failed;
        table->stop_count++;
    }
    table->nothing = PyBytes_FromStringAndSize("", 0);
    if (table->nothing == NULL) goto failed;
    Py_hash_t chance = PyObject_Hash(header_verb); /* of this process */
    if (chance == -1) goto failed;
    table->seed = (uint64_t)chance * UINT64_C(0x9E3779B97F4A7C15);
    return (PyObject *)table;
failed:
    Py_DECREF(table);
    return NULL;
}

static int refuse_unless(Table *table, int state) {
    if (table->state == AT_REST || table->state == state) return 0;
    PyErr_SetString(PyExc_RuntimeError, "the table is at work");
    return -1;
}

static PyObject *table_clear(PyObject *self, PyObject *unused) {
    (void)unused;
    if (refuse_unless((Table *)self, AT_REST) < 0) return NULL;
    table_forget((Table *)self);
    Py_RETURN_NONE;
}

static int is_full(const Table *table) {
    return table->subject_count >= SUBJECTS_MAX || table->legs_known >= LEGS_MAX;
}

static PyObject *table_full(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(is_full((Table *)self));
}

/* Room for one more item; the count of items is bounded by INT_MAX / 2. */
static void *grown(void *items, int count, int *room, size_t size) {
    if (count < *room) return items;
    if (*room > INT32_MAX / 4) return NULL;
    int wanted = *room ? *room * 2 : 8;
    void *found = PyMem_Realloc(items, (size_t)wanted * size);
    if (found != NULL) *room = wanted;
    return found;
}

static PyObject *table_target(PyObject *self, PyObject *peer) {
    Table *table = (Table *)self;
    if (refuse_unless(table, ASKING) < 0) return NULL;
    void *items = grown(table->targets, table->target_count, &table->target_room, sizeof(Target));
    if (items == NULL) return PyErr_NoMemory();
    table->targets = items;
    Target *target = &table->targets[table->target_count];
    memset(target, 0, sizeof *target);
    target->peer = Py_NewRef(peer);
    return PyLong_FromLong(table->target_count++);
}

static int target_number(Table *table, PyObject *given) {
    long number = PyLong_AsLong(given);
    if (number == -1 && PyErr_Occurred()) return -1;
    if (number < 0 || number >= table->target_count) {
        PyErr_SetString(PyExc_ValueError, "no such target");
        return -1;
    }
    return (int)number;
}

/* The number of items of a tuple that may be so long; -1 with an error set. */
static int tuple_count(PyObject *given, const char *what) {
    if (!PyTuple_Check(given)) {
        PyErr_Format(PyExc_TypeError, "%s are a tuple", what);
        return -1;
    }
    Py_ssize_t count = PyTuple_Size(given);
    if (count > LEGS_MAX) {
        PyErr_Format(PyExc_ValueError, "too many %s", what);
        return -1;
    }
    return (int)count;
}

static int leg_set(Table *table, Leg *leg, PyObject *given, int member) {
    if (!PyTuple_Check(given) || PyTuple_Size(given) != (member ? 6 : 5)) {
        PyErr_SetString(PyExc_TypeError, "a leg has five parts, a member six");
        return -1;
    }
    leg->target = target_number(table, PyTuple_GetItem(given, 0));
    if (leg->target < 0) return -1;
    leg->headers = PyObject_IsTrue(PyTuple_GetItem(given, 1));
    if (leg->headers < 0) return -1;
    if (text_set(&leg->verb, PyTuple_GetItem(given, 2)) < 0) return -1;
    if (text_set(&leg->header_verb, PyTuple_GetItem(given, 3)) < 0) return -1;
    if (text_set(&leg->infix, PyTuple_GetItem(given, 4)) < 0) return -1;
    if (member) leg->counted = Py_NewRef(PyTuple_GetItem(given, 5));
    return 0;
}

/* The legs of a tuple; NULL with an error set. `count` is right also then, for `legs_free`. */
static Leg *legs_made(Table *table, PyObject *given, int *count, int member) {
    int wanted = tuple_count(given, "legs");
    *count = 0;
    if (wanted < 0) return NULL;
    Leg *legs = PyMem_Calloc((size_t)wanted + 1, sizeof(Leg));
    if (legs == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (int i = 0; i < wanted; i++) {
        *count = i + 1;
        if (leg_set(table, &legs[i], PyTuple_GetItem(given, i), member) < 0) {
            legs_free(legs, *count);
            *count = 0;
            return NULL;
        }
    }
    return legs;
}

static int64_t leg_words(const Leg *leg) {
    Py_ssize_t verb = leg->verb.size > leg->header_verb.size ? leg->verb.size : leg->header_verb.size;
    return (int64_t)verb + leg->infix.size;
}

static int fan_set(Table *table, Fan *fan, PyObject *legs, PyObject *sinks, PyObject *groups) {
    fan->legs = legs_made(table, legs, &fan->leg_count, 0);
    if (fan->legs == NULL) return -1;
    int sink_count = tuple_count(sinks, "sinks"), group_count = tuple_count(groups, "groups");
    if (sink_count < 0 || group_count < 0) return -1;
    fan->sinks = PyMem_Calloc((size_t)sink_count + 1, sizeof(int));
    fan->groups = PyMem_Calloc((size_t)group_count + 1, sizeof(Group));
    if (fan->sinks == NULL || fan->groups == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < sink_count; i++) {
        fan->sinks[i] = target_number(table, PyTuple_GetItem(sinks, i));
        if (fan->sinks[i] < 0) return -1;
    }
    fan->sink_count = sink_count;
    for (int i = 0; i < group_count; i++) {
        Group *group = &fan->groups[i];
        group->members = legs_made(table, PyTuple_GetItem(groups, i), &group->count, 1);
        if (group->members == NULL) return -1;
        fan->group_count = i + 1;
        if (group->count == 0) {
            PyErr_SetString(PyExc_ValueError, "a group has members");
            return -1;
        }
    }
    fan->weight = (int64_t)fan->leg_count + (int64_t)SINK_COST * sink_count + group_count;
    for (int i = 0; i < fan->leg_count; i++) fan->words += leg_words(&fan->legs[i]);
    for (int i = 0; i < group_count; i++) {
        int64_t most = 0;
        for (int m = 0; m < fan->groups[i].count; m++) {
            int64_t words = leg_words(&fan->groups[i].members[m]);
            if (words > most) most = words;
        }
        fan->words += most;
    }
    return 0;
}

static int fans_ready(Table *table) {
    int room = table->fan_room;
    void *items = grown(table->fans, table->fan_count, &room, sizeof(Fan));
    if (items == NULL) return 0;
    table->fans = items;
    if (room == table->fan_room) return 1;
    int *touched = PyMem_Realloc(table->touched, (size_t)room * sizeof(int));
    if (touched == NULL) return 0;
    table->touched = touched;
    table->fan_room = room;
    return 1;
}

static PyObject *table_fan(PyObject *self, PyObject *args) {
    Table *table = (Table *)self;
    PyObject *legs, *counted, *sinks, *groups;
    if (!PyArg_ParseTuple(args, "OOOO:fan", &legs, &counted, &sinks, &groups)) return NULL;
    if (refuse_unless(table, ASKING) < 0) return NULL;
    Fan fan;
    memset(&fan, 0, sizeof fan);
    if (fan_set(table, &fan, legs, sinks, groups) < 0) {
        fan_free(&fan);
        return NULL;
    }
    if (!fans_ready(table)) {
        fan_free(&fan);
        return PyErr_NoMemory();
    }
    fan.counted = Py_NewRef(counted);
    table->legs_known += fan.leg_count + fan.sink_count;
    for (int i = 0; i < fan.group_count; i++) table->legs_known += fan.groups[i].count;
    table->fans[table->fan_count] = fan;
    return PyLong_FromLong(table->fan_count++);
}

/* -- subjects --------------------------------------------------------------------------------- */

static uint32_t hash_of(uint64_t seed, const char *start, Py_ssize_t size) {
    uint64_t hash = seed ^ (uint64_t)size, word;
    while (size >= 8) {
        memcpy(&word, start, 8);
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 29;
        start += 8;
        size -= 8;
    }
    word = 0;
    memcpy(&word, start, (size_t)size);
    hash = (hash ^ word) * UINT64_C(0xc4ceb9fe1a85ec53);
    hash = (hash ^ hash >> 32) * UINT64_C(0xff51afd7ed558ccd);
    return (uint32_t)(hash >> 32); /* upper bits depend on all that came before */
}

/* The slot of a subject, or the free one where it would go; NULL when too many collide. */
static Slot *slot_of(Slot *slots, uint32_t count, uint32_t hash, const char *start, uint32_t size) {
    uint32_t mask = count - 1, place = hash & mask;
    for (int probe = 0; probe < PROBES_MAX; probe++, place = (place + 1) & mask) {
        Slot *slot = &slots[place];
        if (slot->subject == NULL) return slot;
        if (slot->hash == hash && slot->size == size && memcmp(slot->start, start, size) == 0)
            return slot;
    }
    return NULL;
}

/* Room for one more subject; 0 when there is none, which only costs time. */
static int slots_ready(Table *table) {
    if (table->slot_count > 2 * table->subject_count) return 1;
    uint32_t wanted = table->slot_count ? 2 * table->slot_count : SLOTS_MIN;
    Slot *slots = PyMem_Calloc(wanted, sizeof(Slot));
    if (slots == NULL) return 0;
    for (uint32_t i = 0; i < table->slot_count; i++) {
        Slot *old = &table->slots[i];
        if (old->subject == NULL) continue;
        Slot *slot = slot_of(slots, wanted, old->hash, old->start, old->size);
        if (slot != NULL) {
            *slot = *old;
        } else {
            Py_CLEAR(old->subject);
            table->subject_count--;
        }
    }
    PyMem_Free(table->slots);
    table->slots = slots;
    table->slot_count = wanted;
    return 1;
}

/* Know the fan of a subject; 0 when there is no room for it, which only costs time. The subject is
 * taken over. */
static int keep(Table *table, PyObject *subject, uint32_t hash, Py_ssize_t size, int fan) {
    const char *start = PyBytes_AsString(subject);
    Slot *slot = NULL;
    if (slots_ready(table))
        slot = slot_of(table->slots, table->slot_count, hash, start, (uint32_t)size);
    if (slot == NULL || slot->subject != NULL) {
        Py_DECREF(subject);
        return 0;
    }
    slot->subject = subject;
    slot->start = start;
    slot->size = (uint32_t)size;
    slot->hash = hash;
    slot->fan = fan;
    table->subject_count++;
    return 1;
}

/* Ask for the fan of a subject, and how many of its tokens decide on it. 1 when it was learned, 0
 * when it cannot be, -1 with an error. */
static int learn(Table *table, PyObject *origin, uint32_t hash, const char *start, Py_ssize_t size,
                 int64_t *cost, int *depth) {
    if (is_full(table) || memchr(start, '\t', (size_t)size) || memchr(start, '\r', (size_t)size))
        return 0;
    PyObject *subject = PyBytes_FromStringAndSize(start, size);
    if (subject == NULL) return -1;
    table->state = ASKING;
    PyObject *answer = PyObject_CallFunctionObjArgs(table->miss, origin, subject, NULL);
    table->state = AT_WORK;
    if (answer == NULL) {
        Py_DECREF(subject);
        return -1;
    }
    int number;
    long long asked;
    int good = PyArg_ParseTuple(answer, "iLi", &number, &asked, depth);
    Py_DECREF(answer);
    if (!good) {
        Py_DECREF(subject);
        return -1;
    }
    if (number < STOP || number >= table->fan_count || asked < 0 || asked > INT32_MAX) {
        Py_DECREF(subject);
        PyErr_SetString(PyExc_ValueError, "no such fan");
        return -1;
    }
    *cost += asked;
    return keep(table, subject, hash, size, number);
}

static Slot *known(Table *table, uint32_t hash, const char *start, Py_ssize_t size) {
    if (table->slot_count == 0) return NULL;
    Slot *slot = slot_of(table->slots, table->slot_count, hash, start, (uint32_t)size);
    return slot != NULL && slot->subject != NULL ? slot : NULL;
}

/* -- families --------------------------------------------------------------------------------- */

/* Count the dots of a subject, and note where the token behind each begins; -1 for subjects that are
 * of no family: with an empty token, with too many, like a pattern, or not for the loop at all. */
static int dots_of(const char *start, Py_ssize_t size, uint16_t *behind) {
    int count = 0;
    Py_ssize_t token = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        if (start[i] == '.') {
            if (i == token || count == DOTS_MAX) return -1;
            token = i + 1;
            behind[count++] = (uint16_t)token; /* SUBJECT_BYTES_MAX at most */
        } else if (start[i] == '*' || start[i] == '>' || start[i] == '\t' || start[i] == '\r') {
            return -1;
        }
    }
    return token == size ? -1 : count;
}

static uint32_t family_hash(const Table *table, const char *start, uint32_t size, int dots) {
    return hash_of(table->seed + (uint64_t)dots, start, (Py_ssize_t)size);
}

/* As `slot_of`, for a prefix of subjects with so many dots. */
static Family *family_place(Family *families, uint32_t room, uint32_t hash, const char *start,
                            uint32_t size, uint32_t dots) {
    uint32_t mask = room - 1, place = hash & mask;
    for (int probe = 0; probe < PROBES_MAX; probe++, place = (place + 1) & mask) {
        Family *family = &families[place];
        if (family->prefix == NULL) return family;
        if (family->hash == hash && family->size == size && family->dots == dots
            && memcmp(family->start, start, size) == 0)
            return family;
    }
    return NULL;
}

static Family *family_of(Table *table, const char *start, int dots, const uint16_t *behind) {
    if (table->family_room == 0) return NULL;
    for (int i = 0; i < table->depth_counts[dots]; i++) {
        uint32_t size = behind[table->depths[dots][i] - 1];
        Family *family = family_place(table->families, table->family_room,
                                      family_hash(table, start, size, dots), start, size,
                                      (uint32_t)dots);
        if (family != NULL && family->prefix != NULL) return family;
    }
    return NULL;
}

static int families_ready(Table *table) {
    if (table->family_room > 2 * table->family_count) return 1;
    uint32_t wanted = table->family_room ? 2 * table->family_room : SLOTS_MIN;
    Family *families = PyMem_Calloc(wanted, sizeof(Family));
    if (families == NULL) return 0;
    for (uint32_t i = 0; i < table->family_room; i++) {
        Family *old = &table->families[i];
        if (old->prefix == NULL) continue;
        Family *place = family_place(families, wanted, old->hash, old->start, old->size, old->dots);
        if (place != NULL) {
            *place = *old;
        } else {
            Py_CLEAR(old->prefix);
            table->family_count--;
        }
    }
    PyMem_Free(table->families);
    table->families = families;
    table->family_room = wanted;
    return 1;
}

/* Whether prefixes of so many tokens are looked for, from now on. */
static int depth_known(Table *table, int dots, int depth) {
    int count = table->depth_counts[dots];
    for (int i = 0; i < count; i++)
        if (table->depths[dots][i] == depth) return 1;
    if (count == DEPTHS_MAX) return 0;
    table->depths[dots][count] = (uint8_t)depth;
    table->depth_counts[dots]++;
    return 1;
}

/* So many tokens decide on a subject that was learned. Where there is no room for that it only costs
 * time; -1 with an error. */
static int family_add(Table *table, const char *start, int dots, const uint16_t *behind, int depth,
                      int fan) {
    if (depth < 1 || depth > dots || table->family_count >= FAMILIES_MAX) return 0;
    if (!depth_known(table, dots, depth) || !families_ready(table)) return 0;
    uint32_t size = behind[depth - 1], hash = family_hash(table, start, size, dots);
    Family *family = family_place(table->families, table->family_room, hash, start, size,
                                  (uint32_t)dots);
    if (family == NULL || family->prefix != NULL) return 0;
    PyObject *prefix = PyBytes_FromStringAndSize(start, (Py_ssize_t)size);
    if (prefix == NULL) return -1;
    family->prefix = prefix;
    family->start = PyBytes_AsString(prefix);
    family->size = size;
    family->hash = hash;
    family->dots = (uint32_t)dots;
    family->kept = 0;
    family->fan = fan;
    table->family_count++;
    return 0;
}

/* -- one message ------------------------------------------------------------------------------ */

/* A number without leading zeros; -1 for anything else. */
static Py_ssize_t number_of(const char *start, Py_ssize_t size) {
    if (size < 1 || size > SIZE_DIGITS_MAX || (size > 1 && *start == '0')) return -1;
    Py_ssize_t number = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        unsigned digit = (unsigned char)start[i] - (unsigned)'0';
        if (digit > 9) return -1;
        number = number * 10 + (Py_ssize_t)digit;
    }
    return number;
}

static int is_reserved(const Table *table, const char *reply, Py_ssize_t size) {
    for (int i = 0; i < table->stop_count; i++)
        if (begins(reply, size, &table->stops[i])) return 1;
    return 0;
}

/* Read what stands at `start`, which is canonical and complete; 0 for what is not. */
static int message_read(const Table *table, const char *start, const char *end, int flags,
                        Message *message) {
    int with_headers = 0;
    const Text *verb = &table->verb;
    if (!begins(start, end - start, verb)) {
        verb = &table->header_verb;
        if (!(flags & HEADERS) || !begins(start, end - start, verb)) return 0;
        with_headers = 1;
    }
    const char *place = start + verb->size;
    Py_ssize_t most = table->verb.size + table->line_max + 2;
    if (most > end - start) most = end - start;
    const char *feed = most < verb->size ? NULL
                                         : memchr(place, '\n', (size_t)(most - verb->size));
    if (feed == NULL || feed - place < 2 || feed[-1] != '\r') return 0;
    const char *line_end = feed - 1;
    const char *words[4];
    Py_ssize_t sizes[4];
    int count = 0;
    for (;;) {
        if (count == 4) return 0;
        const char *blank = memchr(place, ' ', (size_t)(line_end - place));
        words[count] = place;
        sizes[count] = (blank ? blank : line_end) - place;
        if (sizes[count] == 0) return 0;
        count++;
        if (blank == NULL) break;
        place = blank + 1;
    }
    int named = count - 1 - with_headers;
    if (named != 1 && named != 2) return 0;
    message->size = number_of(words[count - 1], sizes[count - 1]);
    message->header_size = with_headers ? number_of(words[count - 2], sizes[count - 2]) : -1;
    if (message->size < 0 || message->size > table->payload_max) return 0;
    if (with_headers && (message->header_size < 0 || message->header_size > message->size))
        return 0;
    message->body = feed + 1;
    if (end - message->body < message->size + 2) return 0;
    message->end = message->body + message->size + 2;
    if (message->end[-2] != '\r' || message->end[-1] != '\n') return 0;
    message->start = start;
    message->subject = words[0];
    message->subject_size = sizes[0];
    message->reply = named == 2 ? words[1] : NULL;
    message->reply_size = named == 2 ? sizes[1] : 0;
    message->tail = words[1];
    if (sizes[0] > SUBJECT_BYTES_MAX) return 0;
    if (named == 2) {
        if (is_reserved(table, words[1], sizes[1])) return 0;
        if (memchr(words[1], '\t', (size_t)sizes[1]) || memchr(words[1], '\r', (size_t)sizes[1]))
            return 0;
    }
    return 1;
}

static int asks_for_trace(const Message *message) {
    const char *place = message->body;
    Py_ssize_t left = message->header_size;
    while (left >= TRACE_BYTES) {
        const char *found = memchr(place, TRACE[0], (size_t)(left - TRACE_BYTES + 1));
        if (found == NULL) return 0;
        if (memcmp(found, TRACE, (size_t)TRACE_BYTES) == 0) return 1;
        left -= found + 1 - place;
        place = found + 1;
    }
    return 0;
}

/* The size that goes to targets without headers, with its CR LF. */
static void message_strip(Message *message) {
    char digits[SIZE_DIGITS_MAX + 1];
    Py_ssize_t number = message->size - message->header_size;
    int count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    Py_ssize_t size = 0;
    while (count) message->stripped[size++] = digits[--count];
    message->stripped[size++] = '\r';
    message->stripped[size++] = '\n';
    message->stripped_size = size;
}

static int target_room(Target *target, Py_ssize_t more) {
    if (target->room - target->used >= more) return 1;
    Py_ssize_t wanted = target->room ? 2 * target->room : BUFFER_MIN;
    while (wanted - target->used < more) wanted *= 2; /* both are far below PY_SSIZE_T_MAX */
#ifdef TIGHT
    if (wanted <= 65536) wanted = target->used + more; /* a sanitizer sees the first byte beyond */
#endif
    char *buffer = PyMem_Realloc(target->buffer, (size_t)wanted);
    if (buffer == NULL) return 0;
    target->buffer = buffer;
    target->room = wanted;
    return 1;
}

static char *put(char *place, const char *start, Py_ssize_t size) {
    memcpy(place, start, (size_t)size);
    return place + size;
}

/* Whether a leg gets the message as it came in, behind its subject; else its headers are left out. */
static int is_whole(const Leg *leg, const Message *message) {
    return leg->headers || message->header_size < 0;
}

/* Bytes of a message for a leg. */
static Py_ssize_t leg_size(const Leg *leg, const Message *message) {
    Py_ssize_t size = message->subject_size + leg->infix.size;
    if (is_whole(leg, message)) {
        const Text *verb = message->header_size < 0 ? &leg->verb : &leg->header_verb;
        return size + verb->size + (message->end - message->tail);
    }
    if (message->reply != NULL) size += message->reply_size + 1;
    size += leg->verb.size + message->stripped_size;
    return size + (message->end - message->body) - message->header_size;
}

/* Append a message to what the target of a leg gets; 0, with nothing done, without memory. */
static int leg_write(Table *table, const Leg *leg, const Message *message) {
    Target *target = &table->targets[leg->target];
    Py_ssize_t size = leg_size(leg, message);
    if (!target_room(target, size)) return 0;
    char *place = target->buffer + target->used;
    int whole = is_whole(leg, message);
    const Text *verb = whole && message->header_size >= 0 ? &leg->header_verb : &leg->verb;
    place = put(place, verb->start, verb->size);
    place = put(place, message->subject, message->subject_size);
    place = put(place, leg->infix.start, leg->infix.size);
    if (whole) {
        put(place, message->tail, message->end - message->tail);
    } else {
        if (message->reply != NULL) {
            place = put(place, message->reply, message->reply_size);
            *place++ = ' ';
        }
        place = put(place, message->stripped, message->stripped_size);
        const char *payload = message->body + message->header_size;
        put(place, payload, message->end - payload);
    }
    target->used += size;
    return 1;
}

static int fan_holds(Table *table, const Fan *fan, PyObject *origin) {
    for (int i = 0; i < fan->leg_count; i++)
        if (table->targets[fan->legs[i].target].peer == origin) return 1;
    for (int g = 0; g < fan->group_count; g++)
        for (int m = 0; m < fan->groups[g].count; m++)
            if (table->targets[fan->groups[g].members[m].target].peer == origin) return 1;
    return 0;
}

static PyObject *bytes_or(PyObject *nothing, const char *start, Py_ssize_t size) {
    return size ? PyBytes_FromStringAndSize(start, size) : Py_NewRef(nothing);
}

/* One row for all sinks of a fan; 0 with an error set. `slot` is NULL for a subject that is not known
 * by itself. */
static int sinks_take(Table *table, const Fan *fan, const Message *message, const Slot *slot,
                      PyObject *origin) {
    Py_ssize_t at = message->header_size > 0 ? message->header_size : 0;
    PyObject *subject = slot != NULL
                            ? Py_NewRef(slot->subject)
                            : PyBytes_FromStringAndSize(message->subject, message->subject_size);
    PyObject *reply = bytes_or(table->nothing, message->reply, message->reply_size);
    PyObject *headers = bytes_or(table->nothing, message->body, at);
    PyObject *payload = bytes_or(table->nothing, message->body + at, message->size - at);
    PyObject *row = NULL;
    if (subject != NULL && reply != NULL && headers != NULL && payload != NULL)
        row = PyTuple_Pack(5, subject, reply, headers, payload, origin);
    Py_XDECREF(subject);
    Py_XDECREF(reply);
    Py_XDECREF(headers);
    Py_XDECREF(payload);
    if (row == NULL) return 0;
    int good = 1;
    for (int i = 0; good && i < fan->sink_count; i++) {
        Target *target = &table->targets[fan->sinks[i]];
        if (target->rows == NULL) target->rows = PyList_New(0);
        good = target->rows != NULL && PyList_Append(target->rows, row) == 0;
    }
    Py_DECREF(row);
    return good;
}

static Leg *member_drawn(const Group *group, uint64_t lot) {
    return &group->members[(int)(((lot >> 32) * (uint64_t)group->count) >> 32)];
}

/* Write a message to all legs and to one member of each group; 0, with nothing done, without
 * memory. */
static int fan_write(Table *table, Fan *fan, const Message *message, uint64_t *lot) {
    uint64_t draw = *lot;
    int legs = 0, groups = 0, good = 1;
    for (; good && legs < fan->leg_count; legs++) good = leg_write(table, &fan->legs[legs], message);
    for (; good && groups < fan->group_count; groups++) {
        draw = draw * LOT_FACTOR + LOT_STEP;
        good = leg_write(table, member_drawn(&fan->groups[groups], draw), message);
    }
    if (!good) { /* the last one that was tried has nothing */
        if (groups > 0) groups--;
        else legs--;
        for (int i = 0; i < legs; i++) {
            const Leg *leg = &fan->legs[i];
            table->targets[leg->target].used -= leg_size(leg, message);
        }
        draw = *lot;
        for (int i = 0; i < groups; i++) {
            draw = draw * LOT_FACTOR + LOT_STEP;
            const Leg *leg = member_drawn(&fan->groups[i], draw);
            table->targets[leg->target].used -= leg_size(leg, message);
        }
        return 0;
    }
    draw = *lot;
    for (int i = 0; i < fan->group_count; i++) {
        draw = draw * LOT_FACTOR + LOT_STEP;
        Leg *leg = member_drawn(&fan->groups[i], draw);
        Target *target = &table->targets[leg->target];
        leg->messages++;
        target->messages++;
        target->size += message->size;
        if (message->header_size > 0 && !leg->headers) target->size -= message->header_size;
    }
    *lot = draw;
    return 1;
}

static void fan_count(Table *table, int number, const Message *message) {
    Fan *fan = &table->fans[number];
    if (fan->messages == 0) table->touched[table->touched_count++] = number;
    fan->messages++;
    fan->size += message->size;
    if (message->header_size > 0) fan->stripped += message->header_size;
}

/* -- one call --------------------------------------------------------------------------------- */

typedef struct {
    PyObject *origin;
    int flags;
    int64_t budget, cost, count, size, written;
    uint64_t lot;
} Call;

enum { TAKEN, LEFT, FAILED };

/* Find the fan of a subject that is not known by itself: that of its family, or ask. The first of a
 * family are kept as well: those that come often are found faster. */
static int fan_found(Table *table, Call *call, const Message *message, uint32_t hash, int *fan) {
    const char *start = message->subject;
    Py_ssize_t size = message->subject_size;
    uint16_t behind[DOTS_MAX];
    int dots = dots_of(start, size, behind), depth = 0;
    Family *family = dots > 0 ? family_of(table, start, dots, behind) : NULL;
    if (family != NULL) {
        *fan = family->fan;
        if (family->kept < KEPT_MAX && table->subject_count < SUBJECTS_MAX / 2) {
            PyObject *subject = PyBytes_FromStringAndSize(start, size);
            if (subject == NULL) return FAILED;
            family->kept++;
            keep(table, subject, hash, size, *fan);
        }
        return TAKEN;
    }
    int learned = learn(table, call->origin, hash, start, size, &call->cost, &depth);
    if (learned < 0) return FAILED;
    Slot *slot = learned ? known(table, hash, start, size) : NULL;
    if (slot == NULL) return LEFT;
    *fan = slot->fan;
    return dots > 0 && family_add(table, start, dots, behind, depth, *fan) < 0 ? FAILED : TAKEN;
}

/* Take one message that was read, if it is for the loop. */
static int message_take(Table *table, Call *call, Message *message) {
    Py_ssize_t size = message->subject_size;
    uint32_t hash = hash_of(table->seed, message->subject, size);
    Slot *slot = known(table, hash, message->subject, size);
    int number;
    if (slot != NULL) {
        number = slot->fan;
    } else {
        int found = fan_found(table, call, message, hash, &number);
        if (found != TAKEN) return found;
    }
    if (number == STOP) return LEFT;
    Fan *fan = &table->fans[number];
    if (message->reply != NULL && fan->weight == 0 && (call->flags & ANSWERS)) return LEFT;
    if (!(call->flags & HEARS) && fan_holds(table, fan, call->origin)) return LEFT;
    if (message->header_size > 0 && asks_for_trace(message)) return LEFT;
    int copies = fan->leg_count + fan->group_count;
    if (copies > FEW) {
        call->written += fan->words + copies * (int64_t)(message->end - message->start);
        if (call->written > OUTPUT_BYTES_MAX) return LEFT;
    }
    if (copies) {
        if (message->header_size >= 0) message_strip(message);
        if (!fan_write(table, fan, message, &call->lot)) return LEFT;
    }
    if (fan->sink_count && !sinks_take(table, fan, message, slot, call->origin)) return FAILED;
    fan_count(table, number, message);
    call->count++;
    call->size += message->size;
    call->cost += MESSAGE_COST + fan->weight;
    return TAKEN;
}

/* Append an item, which may be NULL with an error set; it is released. 0 with an error set. */
static int list_take(PyObject *list, PyObject *item) {
    if (item == NULL) return 0;
    int good = PyList_Append(list, item) == 0;
    Py_DECREF(item);
    return good;
}

static int take_written(Target *target, PyObject *written) {
    if (target->messages == 0) return 1;
    PyObject *item = Py_BuildValue("(O(y#)LL)", target->peer, target->buffer, target->used,
                                   (long long)target->messages, (long long)target->size);
    target->used = 0;
    target->messages = target->size = 0;
    PyMem_Free(target->buffer);
    target->buffer = NULL;
    target->room = 0;
    return list_take(written, item);
}

static int take_delivered(PyObject *delivered, PyObject *counted, int64_t messages) {
    return list_take(delivered, Py_BuildValue("(OL)", counted, (long long)messages));
}

static int take_fan(Table *table, Fan *fan, PyObject *written, PyObject *captured,
                    PyObject *delivered) {
    for (int i = 0; i < fan->leg_count; i++)
        if (!take_written(&table->targets[fan->legs[i].target], written)) return 0;
    for (int i = 0; i < fan->sink_count; i++) {
        Target *sink = &table->targets[fan->sinks[i]];
        if (sink->rows == NULL) continue;
        PyObject *rows = sink->rows;
        sink->rows = NULL;
        if (!list_take(captured, Py_BuildValue("(ON)", sink->peer, rows))) return 0;
    }
    for (int g = 0; g < fan->group_count; g++) {
        for (int m = 0; m < fan->groups[g].count; m++) {
            Leg *leg = &fan->groups[g].members[m];
            if (!take_written(&table->targets[leg->target], written)) return 0;
            if (leg->messages == 0) continue;
            int64_t messages = leg->messages;
            leg->messages = 0;
            if (!take_delivered(delivered, leg->counted, messages)) return 0;
        }
    }
    return 1;
}

/* What the fans that were used got, in the order of their first message. */
static int take_outputs(Table *table, PyObject *written, PyObject *captured, PyObject *delivered) {
    for (int i = 0; i < table->touched_count; i++) {
        Fan *fan = &table->fans[table->touched[i]];
        for (int l = 0; l < fan->leg_count; l++) {
            Target *target = &table->targets[fan->legs[l].target];
            target->messages += fan->messages;
            target->size += fan->size - (fan->legs[l].headers ? 0 : fan->stripped);
        }
        if (fan->leg_count && !take_delivered(delivered, fan->counted, fan->messages)) return 0;
    }
    for (int i = 0; i < table->touched_count; i++) {
        Fan *fan = &table->fans[table->touched[i]];
        if (!take_fan(table, fan, written, captured, delivered)) return 0;
        fan->messages = fan->size = fan->stripped = 0;
    }
    table->touched_count = 0;
    return 1;
}

static PyObject *outputs_made(Table *table) {
    PyObject *written = PyList_New(0), *captured = PyList_New(0), *delivered = PyList_New(0);
    PyObject *outputs = NULL;
    if (written != NULL && captured != NULL && delivered != NULL
        && take_outputs(table, written, captured, delivered))
        outputs = PyTuple_Pack(3, written, captured, delivered);
    Py_XDECREF(written);
    Py_XDECREF(captured);
    Py_XDECREF(delivered);
    return outputs;
}

static int64_t clamped(PyObject *given) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(given, &overflow);
    return overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : number;
}

/* What a call has made, None without messages. Where it failed, all of it is forgotten. */
static PyObject *call_end(Table *table, const Call *call, int what) {
    PyObject *outputs = NULL;
    if (what != FAILED) outputs = call->count ? outputs_made(table) : Py_NewRef(Py_None);
    table->state = AT_REST;
    if (outputs == NULL) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace); /* releasing objects may run other code */
        table_forget(table);
        PyErr_Restore(type, value, trace);
    }
    return outputs;
}

/* route(data, position, origin, flags, budget, lot) */
static PyObject *table_route(PyObject *self, PyObject *const *args, Py_ssize_t arg_count) {
    Table *table = (Table *)self;
    Call call;
    memset(&call, 0, sizeof call);
    if (arg_count != 6) {
        PyErr_SetString(PyExc_TypeError, "route takes six arguments");
        return NULL;
    }
    char *data;
    Py_ssize_t size;
    if (refuse_unless(table, AT_REST) < 0 || PyBytes_AsStringAndSize(args[0], &data, &size) < 0) return NULL;
    Py_ssize_t position = PyLong_AsSsize_t(args[1]);
    call.origin = args[2];
    call.flags = (int)PyLong_AsLong(args[3]);
    call.budget = clamped(args[4]);
    call.lot = PyLong_AsUnsignedLongLong(args[5]);
    if (PyErr_Occurred()) return NULL;
    if (position < 0) {
        PyErr_SetString(PyExc_ValueError, "the position is below 0");
        return NULL;
    }
    table->state = AT_WORK;
    int what = TAKEN;
    while (position < size && call.cost < call.budget) {
        Message message;
        if (!message_read(table, data + position, data + size, call.flags, &message)) break;
        what = message_take(table, &call, &message);
        if (what != TAKEN) break;
        position = message.end - data;
    }
    PyObject *outputs = call_end(table, &call, what);
    if (outputs == NULL) return NULL;
    return Py_BuildValue("(nLLLKN)", position, (long long)call.count, (long long)call.size,
                         (long long)call.cost, (unsigned long long)call.lot, outputs);
}

/* Take what one publisher has sent, if that is one message and nothing else. `row` is kept. */
static int row_take(Table *table, Call *call, PyObject *row) {
    char *data;
    Py_ssize_t size;
    if (!PyTuple_Check(row) || PyTuple_Size(row) != 3) {
        PyErr_SetString(PyExc_TypeError, "a row is a publisher, flags and bytes");
        return FAILED;
    }
    long flags = PyLong_AsLong(PyTuple_GetItem(row, 1));
    if (flags == -1 && PyErr_Occurred()) return FAILED;
    if (PyBytes_AsStringAndSize(PyTuple_GetItem(row, 2), &data, &size) < 0) return FAILED;
    call->origin = PyTuple_GetItem(row, 0);
    call->flags = (int)flags;
    Message message;
    if (!message_read(table, data, data + size, call->flags, &message)) return LEFT;
    return message.end == data + size ? message_take(table, call, &message) : LEFT;
}

/* route_each(rows, lot) */
static PyObject *table_route_each(PyObject *self, PyObject *const *args, Py_ssize_t arg_count) {
    Table *table = (Table *)self;
    Call call;
    memset(&call, 0, sizeof call);
    if (arg_count != 2 || !PyList_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "route_each takes a list and a number");
        return NULL;
    }
    call.lot = PyLong_AsUnsignedLongLong(args[1]);
    if (PyErr_Occurred() || refuse_unless(table, AT_REST) < 0) return NULL;
    PyObject *sizes = PyList_New(0);
    if (sizes == NULL) return NULL;
    table->state = AT_WORK;
    int what = TAKEN;
    for (Py_ssize_t at = 0; what == TAKEN && at < PyList_Size(args[0]); at++) {
        int64_t before = call.size;
        PyObject *row = Py_NewRef(PyList_GetItem(args[0], at));
        what = row_take(table, &call, row);
        Py_DECREF(row);
        if (what == TAKEN && !list_take(sizes, PyLong_FromLongLong((long long)(call.size - before))))
            what = FAILED;
    }
    PyObject *outputs = call_end(table, &call, what);
    if (outputs == NULL) {
        Py_DECREF(sizes);
        return NULL;
    }
    return Py_BuildValue("(NKN)", sizes, (unsigned long long)call.lot, outputs);
}

/* -- the module ------------------------------------------------------------------------------- */

static PyMethodDef table_methods[] = {
    {"route", (PyCFunction)(void (*)(void))table_route, METH_FASTCALL,
     "Take messages from a position on."},
    {"route_each", (PyCFunction)(void (*)(void))table_route_each, METH_FASTCALL,
     "Take one message of each of several publishers."},
    {"target", table_target, METH_O, "The number of a peer or sink."},
    {"fan", table_fan, METH_VARARGS, "The number of a fan."},
    {"clear", table_clear, METH_NOARGS, "Forget all subjects, fans and targets."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef table_properties[] = {
    {"full", table_full, NULL, "Whether it learns nothing more.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot table_slots[] = {
    {Py_tp_doc, "See contract.LaneTable."},
    {Py_tp_new, table_make},
    {Py_tp_dealloc, table_free},
    {Py_tp_traverse, table_traverse},
    {Py_tp_clear, table_clear_references},
    {Py_tp_methods, table_methods},
    {Py_tp_getset, table_properties},
    {0, NULL},
};

static PyType_Spec table_spec = {
    .name = "jsctl.broker.accel._lane.Table",
    .basicsize = sizeof(Table),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = table_slots,
};

static int module_fill(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &table_spec, NULL);
    if (type == NULL) return -1;
    int done = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return done;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_fill},
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_lane",
    .m_doc = "The lane's loop, compiled; see contract.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__lane(void) { return PyModuleDef_Init(&module); }
