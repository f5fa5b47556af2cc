/* Shared by the generated functions: the parts of Python's stable ABI that they use, NumPy's arrays and scalars as they
 * lie in memory, and the memory of arrays that kernels make.
 *
 * The declarations stand here, and not in Python.h, so that a wheel can be built where Python's headers are not
 * installed, and for another processor than this one. All of them are part of the stable ABI since Python 3.11. The
 * layout of NumPy's objects is part of its ABI. Pythons without a GIL have another layout and cannot load this file.
 */

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef intptr_t Py_ssize_t;
typedef struct _typeobject PyTypeObject;
typedef struct { Py_ssize_t refcount; PyTypeObject *type; } PyObject;
typedef struct PyThreadState PyThreadState;
typedef PyObject *(*PyCFunction)(PyObject *, PyObject *const *, Py_ssize_t);
typedef struct { const char *name; PyCFunction function; int flags; const char *text; } PyMethodDef;
typedef struct {
    PyObject head; PyObject *(*init)(void); Py_ssize_t index; PyObject *copy;
    const char *name; const char *text; Py_ssize_t size; PyMethodDef *methods;
    void *slots; void *traverse; void *clear; void *free;
} PyModuleDef;

enum { METH_FASTCALL = 0x80, METH_O = 0x8, API_VERSION = 3 };

extern PyTypeObject PyLong_Type, PyFloat_Type, PyBool_Type, PyBytes_Type, PyTuple_Type;
extern PyObject _Py_TrueStruct, _Py_NoneStruct, *PyExc_IndexError;
PyObject *PyBool_FromLong(long), *PyFloat_FromDouble(double);
PyObject *PyLong_FromLongLong(long long), *PyLong_FromUnsignedLongLong(unsigned long long);
PyObject *PyObject_Call(PyObject *, PyObject *, PyObject *), *PyObject_CallFunction(PyObject *, const char *, ...);
PyObject *PyTuple_New(Py_ssize_t), *PyTuple_GetItem(PyObject *, Py_ssize_t), *PyErr_NoMemory(void);
PyObject *PyErr_Format(PyObject *, const char *, ...);
PyObject *PyImport_ImportModule(const char *), *PyObject_GetAttrString(PyObject *, const char *);
PyObject *PyCFunction_NewEx(PyMethodDef *, PyObject *, PyObject *), *PyModule_Create2(PyModuleDef *, int);
PyObject *PyUnicode_FromString(const char *), *PyObject_GetItem(PyObject *, PyObject *);
PyThreadState *PyEval_SaveThread(void);
Py_ssize_t PyTuple_Size(PyObject *), PyBytes_Size(PyObject *);
char *PyBytes_AsString(PyObject *);
double PyFloat_AsDouble(PyObject *);
long long PyLong_AsLongLongAndOverflow(PyObject *, int *);
int PyTuple_SetItem(PyObject *, Py_ssize_t, PyObject *), PyType_IsSubtype(PyTypeObject *, PyTypeObject *);
int PyModule_AddObjectRef(PyObject *, const char *, PyObject *), PyObject_RichCompareBool(PyObject *, PyObject *, int);
void PyEval_RestoreThread(PyThreadState *), Py_IncRef(PyObject *), Py_DecRef(PyObject *);

/* NumPy's array, dtype and scalars */
typedef struct {
    PyObject head; PyTypeObject *scalar; char kind, type, byteorder, flags; int number;
    uint64_t flags64; Py_ssize_t size;
} Dtype;
typedef struct {
    PyObject head; char *data; int dimensions; Py_ssize_t *shape, *strides; PyObject *base; Dtype *dtype; int flags;
} Array;
typedef struct { PyObject head; union { int64_t i64; uint64_t u64; double f64; float f32; int32_t i32; uint32_t u32;
                                        int16_t i16; uint16_t u16; int8_t i8; uint8_t u8; } value; } Scalar;

enum { CONTIGUOUS = 0x1, FORTRAN = 0x2, ALIGNED = 0x100, WRITEABLE = 0x400 };

/* one of NumPy's scalar types, and a dtype of a record, with the object that was last found to be equal to it */
typedef struct { PyObject *wanted; Dtype *seen; } Record;

static PyTypeObject *array_type, *bool_type, *int64_type, *uint64_type, *float32_type, *int32_type, *uint32_type,
    *int16_type, *uint16_type, *int8_type, *uint8_type;
static PyObject *empty_array;

static int is_array(PyObject *object, int dimensions, int flags, char kind, int size) {
    if (object->type != array_type && !PyType_IsSubtype(object->type, array_type)) return 0;
    Array *array = (Array *)object;
    return array->dimensions == dimensions && (array->flags & flags) == flags && array->dtype->kind == kind &&
           array->dtype->byteorder != '>' && (kind == 'V' || array->dtype->size == size);
}

static int is_record(PyObject *object, Record *record) {
    Dtype *dtype = ((Array *)object)->dtype;
    if (dtype == record->seen) return 1;
    if (record->wanted == NULL || PyObject_RichCompareBool((PyObject *)dtype, record->wanted, 2) != 1) return 0;
    Py_IncRef((PyObject *)dtype);
    if (record->seen) Py_DecRef((PyObject *)record->seen);
    record->seen = dtype;
    return 1;
}

static int is_bool(PyObject *object) { return object->type == &PyBool_Type || object->type == bool_type; }
static uint8_t bool_of(PyObject *object) {
    return object->type == &PyBool_Type ? object == &_Py_TrueStruct : ((Scalar *)object)->value.u8;
}

static int is_int64(PyObject *object) {
    if (object->type == int64_type) return 1;
    if (object->type != &PyLong_Type) return 0;
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow == 0;
}
static int64_t int64_of(PyObject *object) {
    int overflow;
    return object->type == int64_type ? ((Scalar *)object)->value.i64 : PyLong_AsLongLongAndOverflow(object, &overflow);
}

static int is_float64(PyObject *object) {
    return object->type == &PyFloat_Type || PyType_IsSubtype(object->type, &PyFloat_Type);
}
static double float64_of(PyObject *object) { return PyFloat_AsDouble(object); }

#define SCALAR(name, field, ctype)                                                       \
    static int is_##name(PyObject *object) { return object->type == name##_type; }       \
    static ctype name##_of(PyObject *object) { return ((Scalar *)object)->value.field; }
SCALAR(uint64, u64, uint64_t)
SCALAR(float32, f32, float)
SCALAR(int32, i32, int32_t)
SCALAR(uint32, u32, uint32_t)
SCALAR(int16, i16, int16_t)
SCALAR(uint16, u16, uint16_t)
SCALAR(int8, i8, int8_t)
SCALAR(uint8, u8, uint8_t)

static int is_bytes(PyObject *object) { return object->type == &PyBytes_Type; }
static int is_none(PyObject *object) { return object == &_Py_NoneStruct; }
static int is_tuple(PyObject *object, Py_ssize_t size) {
    return object->type == &PyTuple_Type && PyTuple_Size(object) == size;
}

/* a class of named tuples, with its place; the class itself is looked up when such a tuple is first passed */
typedef struct { const char *module, *name; PyTypeObject *found; } Named;

static PyObject *class_of(Named *named) {
    if (named->found == NULL) {
        PyObject *module = PyImport_ImportModule(named->module);
        if (module == NULL) return NULL;
        named->found = (PyTypeObject *)PyObject_GetAttrString(module, named->name);
        Py_DecRef(module);
    }
    return (PyObject *)named->found;
}
/* -1: an exception is set */
static int is_named(PyObject *object, Named *named) {
    if (object->type == named->found) return 1;
    if (named->found != NULL || !PyType_IsSubtype(object->type, &PyTuple_Type) || object->type == &PyTuple_Type) return 0;
    return class_of(named) == NULL ? -1 : object->type == named->found;
}

static Py_ssize_t items_of(Array *array) {
    Py_ssize_t count = 1;
    for (int axis = 0; axis < array->dimensions; axis++) count *= array->shape[axis];
    return count;
}

/* Memory of arrays that a kernel makes: what Numba's runtime does with `struct MemInfo`, without its statistics. */
typedef struct {
    _Atomic size_t references;
    void (*destroy)(void *, size_t, void *);
    void *detail, *data;
    size_t size;
    void *allocator;
} MemInfo;

#define LOCAL __attribute__((visibility("hidden")))

LOCAL void *NRT_Allocate(size_t size) { return malloc(size ? size : 1); }
LOCAL void NRT_Free(void *memory) { free(memory); }

LOCAL MemInfo *NRT_MemInfo_alloc_aligned(size_t size, unsigned align) {
    char *memory = malloc(sizeof(MemInfo) + size + 2 * (size_t)align);
    if (memory == NULL) return NULL;
    uintptr_t data = (uintptr_t)memory + sizeof(MemInfo);
    if (align) data = (data + align - 1) / align * align;
    MemInfo *info = (MemInfo *)memory;
    *info = (MemInfo){.references = 1, .data = (void *)data, .size = size};
    return info;
}
LOCAL MemInfo *NRT_MemInfo_alloc(size_t size) { return NRT_MemInfo_alloc_aligned(size, 0); }

static void free_list(void *data, size_t size, void *detail) {
    (void)size;
    if (detail) ((void (*)(void *))detail)(data);
    free(data);
}
LOCAL MemInfo *NRT_MemInfo_new_varsize_dtor(size_t size, void *detail) {
    MemInfo *info = malloc(sizeof(MemInfo));
    void *data = NRT_Allocate(size);
    if (info == NULL || data == NULL) {
        free(info);
        free(data);
        return NULL;
    }
    *info = (MemInfo){.references = 1, .destroy = free_list, .detail = detail, .data = data, .size = size};
    return info;
}
LOCAL MemInfo *NRT_MemInfo_new_varsize(size_t size) { return NRT_MemInfo_new_varsize_dtor(size, NULL); }
LOCAL void *NRT_MemInfo_varsize_alloc(MemInfo *info, size_t size) {
    info->data = NRT_Allocate(size);
    if (info->data) info->size = size;
    return info->data;
}
LOCAL void *NRT_MemInfo_varsize_realloc(MemInfo *info, size_t size) {
    void *data = realloc(info->data, size ? size : 1);
    if (data == NULL) return NULL;
    info->size = size;
    return info->data = data;
}
LOCAL void NRT_MemInfo_varsize_free(MemInfo *info, void *data) {
    free(data);
    if (data == info->data) info->data = NULL;
}
LOCAL void NRT_MemInfo_call_dtor(MemInfo *info) {
    if (info->destroy) info->destroy(info->data, info->size, info->detail);
    free(info);
}
static void release(MemInfo *info) {
    if (info && atomic_fetch_sub(&info->references, 1) == 1) NRT_MemInfo_call_dtor(info);
}

/* An array that a kernel returned, as a new array of NumPy's: its elements are copied. */
static PyObject *array_from(MemInfo *info, const void *data, int dimensions, const int64_t *shape, const char *dtype) {
    PyObject *sizes = PyTuple_New(dimensions), *array = NULL;
    for (int axis = 0; sizes && axis < dimensions; axis++) PyTuple_SetItem(sizes, axis, PyLong_FromLongLong(shape[axis]));
    if (sizes) array = PyObject_CallFunction(empty_array, "Os", sizes, dtype);
    if (array) memcpy(((Array *)array)->data, data, items_of((Array *)array) * ((Array *)array)->dtype->size);
    if (sizes) Py_DecRef(sizes);
    release(info);
    return array;
}

/* A tuple, or an instance of a class of named tuples, of new objects. */
static PyObject *tuple_from(Named *named, Py_ssize_t size, PyObject **parts) {
    PyObject *tuple = PyTuple_New(size);
    int whole = tuple != NULL;
    for (Py_ssize_t place = 0; place < size; place++) {
        whole = whole && parts[place];
        if (tuple && parts[place]) PyTuple_SetItem(tuple, place, parts[place]);
        else if (parts[place]) Py_DecRef(parts[place]);
    }
    PyObject *made = whole ? tuple : NULL;
    if (whole && named) {
        PyObject *type = class_of(named);
        made = type ? PyObject_Call(type, tuple, NULL) : NULL;
    }
    if (tuple && made != tuple) Py_DecRef(tuple);
    return made;
}

/* What Numba's machine code leaves of an exception: its pickled class and arguments, at first. */
typedef struct { const char *pickled; int32_t size; } Failure;

/* Sets the exception of a kernel: IndexError if the machine code checks bounds, else there is not enough memory. */
static PyObject *failed(const Failure *failure, const char *kernel) {
    static const char name[] = "IndexError";
    Py_ssize_t last = failure ? failure->size - (Py_ssize_t)(sizeof name - 1) : -1;
    for (Py_ssize_t place = 0; place <= last; place++)
        if (memcmp(failure->pickled + place, name, sizeof name - 1) == 0)
            return PyErr_Format(PyExc_IndexError, "an index is out of bounds in %s", kernel);
    return PyErr_NoMemory();
}

/* `self` is a Python function that calls the kernel in another way. */
static PyObject *otherwise(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    PyObject *arguments = PyTuple_New(count);
    if (arguments == NULL) return NULL;
    for (Py_ssize_t place = 0; place < count; place++) {
        Py_IncRef(given[place]);
        PyTuple_SetItem(arguments, place, given[place]);
    }
    PyObject *result = PyObject_Call(self, arguments, NULL);
    Py_DecRef(arguments);
    return result;
}

static PyTypeObject *numpy_type(PyObject *numpy, const char *name) {
    return numpy ? (PyTypeObject *)PyObject_GetAttrString(numpy, name) : NULL;
}

static int load_numpy(void) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    array_type = numpy_type(numpy, "ndarray");
    bool_type = numpy_type(numpy, "bool_");
    int64_type = numpy_type(numpy, "int64");
    uint64_type = numpy_type(numpy, "uint64");
    float32_type = numpy_type(numpy, "float32");
    int32_type = numpy_type(numpy, "int32");
    uint32_type = numpy_type(numpy, "uint32");
    int16_type = numpy_type(numpy, "int16");
    uint16_type = numpy_type(numpy, "uint16");
    int8_type = numpy_type(numpy, "int8");
    uint8_type = numpy_type(numpy, "uint8");
    empty_array = (PyObject *)numpy_type(numpy, "empty");
    if (numpy) Py_DecRef(numpy);
    return empty_array && uint8_type && int8_type && uint16_type && int16_type && uint32_type && int32_type &&
           float32_type && uint64_type && int64_type && bool_type && array_type;
}
