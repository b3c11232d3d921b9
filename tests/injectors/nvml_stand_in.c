/* The symbols of NVML that are sampled, with two made-up devices; the second lacks features. */
#define OK 0
#define NOT_SUPPORTED 3
#define INSUFFICIENT_SIZE 7
#define ALL_LINKS 0xFFFFFFFFu
typedef struct { unsigned gpu, memory; } use_t;
typedef struct { unsigned long long total, free, used; } memory_t;
int nvmlInitWithFlags(unsigned flags) { return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return "not today"; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = (void *)(long)(i + 1); return OK; }
int nvmlDeviceGetUtilizationRates(void *h, use_t *u) { u->gpu = 97; u->memory = 41; return OK; }
int nvmlDeviceGetMemoryInfo(void *h, memory_t *m) {
  m->total = 80ULL << 30; m->free = 60ULL << 30; m->used = 20ULL << 30; return OK; }
int nvmlDeviceGetPowerUsage(void *h, unsigned *mw) {
  if (h == (void *)2) return NOT_SUPPORTED;
  *mw = 312500; return OK; }
int nvmlDeviceGetEnforcedPowerLimit(void *h, unsigned *mw) { *mw = 700000; return OK; }
int nvmlDeviceGetClockInfo(void *h, int type, unsigned *mhz) {
  *mhz = type == 1 ? 1980 : 2619; return OK; }
int nvmlDeviceGetTemperature(void *h, int sensor, unsigned *c) { *c = 54; return OK; }
int nvmlDeviceGetPcieThroughput(void *h, int counter, unsigned *kib) {
  *kib = counter ? 2000 : 1000; return OK; }
int nvmlDeviceGetCurrPcieLinkGeneration(void *h, unsigned *g) { *g = 5; return OK; }
int nvmlDeviceGetCurrPcieLinkWidth(void *h, unsigned *w) { *w = 16; return OK; }
typedef struct {
  unsigned field, scope; long long timestamp, latency;
  int type, status; unsigned long long value; } field_t;
int nvmlDeviceGetFieldValues(void *h, int n, field_t *f) {
  for (int i = 0; i < n; i++) {
    f[i].status = h == (void *)2 ? NOT_SUPPORTED : OK;
    f[i].value = f[i].scope == ALL_LINKS ? (f[i].field == 138 ? 36 : 54) : 1;
  }
  return OK; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *h, unsigned *n, void *infos) {
  if (h == (void *)2) return NOT_SUPPORTED;
  *n = 3;
  return infos ? OK : INSUFFICIENT_SIZE; }
