/* Stands in for the CUDA driver: the calls of capdoctor/engines/gpus/driver.py over host memory.
 *
 * FAKE_CUDA_DEVICES   how many devices there are (default 1); CUDA_VISIBLE_DEVICES is obeyed
 * FAKE_CUDA_FAIL      CALL=CODE or CALL=CODE@DEVICE: this call is refused
 * FAKE_CUDA_HANG      CALL: this call never returns
 * FAKE_CUDA_WRONG     DEVICE: this one's kernel computes something else
 * CUDA_LOG_FILE       stdout: the log goes there, as that of the real one does
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_OPERATIONS 16

typedef struct { int kernel; uint32_t *place, word; size_t count; int device; } operation;
typedef struct { int capturing, recorded; operation operations[MAX_OPERATIONS]; } stream;

static int current = -1;

static int refused(const char *call)
{
    const char *fail = getenv("FAKE_CUDA_FAIL"), *hang = getenv("FAKE_CUDA_HANG");
    size_t size = strlen(call);
    if (hang && !strcmp(hang, call))
        for (;;) pause();
    if (!fail || strncmp(fail, call, size) || fail[size] != '=') return 0;
    const char *device = strchr(fail, '@');
    return device && atoi(device + 1) != current ? 0 : atoi(fail + size + 1);
}

#define REFUSE(call) do { int code = refused(call); if (code) return code; } while (0)

static void perform(const operation *one)
{
    const char *wrong = getenv("FAKE_CUDA_WRONG");
    uint32_t off = wrong && atoi(wrong) == one->device;
    for (size_t i = 0; i < one->count; i++)
        one->place[i] = one->kernel ? 3 * one->place[i] + 1 + off : one->word;
}

static void put(stream *on, operation one)
{
    one.device = current;
    if (on->capturing) on->operations[on->recorded++] = one;
    else perform(&one);
}

int cuInit(unsigned flags)
{
    (void)flags;
    const char *log = getenv("CUDA_LOG_FILE");
    if (log && !strcmp(log, "stdout")) {
        static const char text[] = "[22:49:39.058][1394][CUDA][E] No CUDA context is current";
        if (write(1, text, sizeof text - 1) < 0) return 999;  /* no end of line: that is the worst */
    }
    REFUSE("cuInit");
    return 0;
}

int cuGetErrorName(int code, const char **text)
{
    static char name[64];
    switch (code) {
    case 2: *text = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
    case 100: *text = "CUDA_ERROR_NO_DEVICE"; return 0;
    case 221: *text = "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"; return 0;
    case 719: *text = "CUDA_ERROR_LAUNCH_FAILED"; return 0;
    default: snprintf(name, sizeof name, "CUDA_ERROR_%d", code); *text = name; return 0;
    }
}

int cuDeviceGetCount(int *count)
{
    REFUSE("cuDeviceGetCount");
    const char *devices = getenv("FAKE_CUDA_DEVICES"), *seen = getenv("CUDA_VISIBLE_DEVICES");
    int there = devices ? atoi(devices) : 1, found = 0;
    if (!seen) { *count = there; return 0; }
    for (const char *at = seen; *at >= '0' && *at <= '9' && atoi(at) < there;) {
        found++;
        at += strcspn(at, ",");
        if (*at == ',') at++;
    }
    *count = found;
    return found ? 0 : 100;
}

int cuDeviceGet(int *device, int index) { *device = index; current = index; REFUSE("cuDeviceGet"); return 0; }

int cuDeviceGetName(char *text, int size, int device)
{
    snprintf(text, (size_t)size, "Fake GPU %c", 'A' + device);
    return 0;
}

int cuDeviceGetUuid(unsigned char *uuid, int device)
{
    REFUSE("cuDeviceGetUuid");
    memset(uuid, 0, 16);
    uuid[15] = (unsigned char)(0xA0 + device);
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    REFUSE("cuDevicePrimaryCtxRetain");
    *context = (void *)(intptr_t)(device + 1);
    return 0;
}

int cuCtxSetCurrent(void *context) { current = (int)(intptr_t)context - 1; REFUSE("cuCtxSetCurrent"); return 0; }

int cuMemGetInfo_v2(size_t *free_, size_t *total)
{
    REFUSE("cuMemGetInfo_v2");
    *free_ = (size_t)7 << 30;
    *total = (size_t)8 << 30;
    return 0;
}

int cuMemAlloc_v2(void **place, size_t size)
{
    REFUSE("cuMemAlloc_v2");
    *place = calloc(1, size);
    return 0;
}

int cuStreamCreate(stream **made, unsigned flags)
{
    (void)flags;
    REFUSE("cuStreamCreate");
    *made = calloc(1, sizeof **made);
    return 0;
}

int cuMemsetD32Async(void *place, unsigned word, size_t count, stream *on)
{
    REFUSE("cuMemsetD32Async");
    put(on, (operation){0, place, word, count, 0});
    return 0;
}

int cuStreamSynchronize(stream *on) { (void)on; REFUSE("cuStreamSynchronize"); return 0; }

int cuMemcpyDtoH_v2(void *target, const void *source, size_t size)
{
    REFUSE("cuMemcpyDtoH_v2");
    memcpy(target, source, size);
    return 0;
}

int cuModuleLoadData(void **module, const char *image)
{
    REFUSE("cuModuleLoadData");
    *module = (void *)image;
    return strstr(image, ".entry triple_plus_one") ? 0 : 218;
}

int cuModuleGetFunction(void **kernel, void *module, const char *name)
{
    *kernel = module;
    return strcmp(name, "triple_plus_one") ? 500 : 0;
}

int cuLaunchKernel(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, stream *on, void **arguments, void **extra)
{
    (void)kernel; (void)shared; (void)extra;
    REFUSE("cuLaunchKernel");
    uint32_t count = *(uint32_t *)arguments[1];
    if (gy * gz * by * bz != 1 || (size_t)gx * bx < count) return 1;
    put(on, (operation){1, *(uint32_t **)arguments[0], 0, count, 0});
    return 0;
}

int cuStreamBeginCapture_v2(stream *on, int mode)
{
    (void)mode;
    REFUSE("cuStreamBeginCapture_v2");
    on->capturing = 1;
    return 0;
}

int cuStreamEndCapture(stream *on, stream **graph)
{
    REFUSE("cuStreamEndCapture");
    on->capturing = 0;
    *graph = on;
    return 0;
}

int cuGraphInstantiateWithFlags(stream **ready, stream *graph, unsigned long long flags)
{
    (void)flags;
    REFUSE("cuGraphInstantiateWithFlags");
    *ready = graph;
    return 0;
}

int cuGraphLaunch(stream *graph, stream *on)
{
    (void)on;
    REFUSE("cuGraphLaunch");
    for (int i = 0; i < graph->recorded; i++) perform(&graph->operations[i]);
    return 0;
}

int cuMemcpyPeer(void *target, void *to, const void *source, void *from, size_t size)
{
    (void)to; (void)from;
    REFUSE("cuMemcpyPeer");
    memcpy(target, source, size);
    return 0;
}
