/* Targets as XLA is asked for them.
 *
 * The CPU is the one we run on. A GPU is one of Lawson's target files, written
 * as XLA's GpuTargetConfigProto: what the file does not hold (registers, block
 * shapes) is the same on every NVIDIA device that XLA supports; the memory
 * size, which bounds rematerialisation only, is an H100's. A TPU is a topology
 * of one chip, by the name that libtpu knows.
 */
#include <stdio.h>
#include <string.h>

#include "lab/subject_impl.h"
#include "target/target.h"

static const char *const tpus[] = {"v2", "v3", "v4", "v5e", "v5p", "v6e"};
enum { N_TPUS = sizeof tpus / sizeof *tpus };

static bool is_tpu(const char *target) {
  for (int k = 0; k < N_TPUS; k++)
    if (!strcmp(tpus[k], target)) return true;
  return false;
}

/* "sm_90" -> 9, 0 */
static bool capability(const char *isa, int *major, int *minor) {
  int v;
  if (sscanf(isa, "sm_%d", &v) != 1 || v < 10) return false;
  *major = v / 10;
  *minor = v % 10;
  return true;
}

static void print_device(lw_buf *b, const lw_target *t, int major, int minor) {
  static const struct {
    const char *name;
    size_t at;
  } fields[] = {
#define F(xla, ours) {xla, offsetof(lw_target, gpu.ours)}
      F("threads_per_block_limit", threads_per_block_limit),
      F("threads_per_warp", threads_per_warp),
      F("shared_memory_per_block", shared_memory_per_block),
      F("shared_memory_per_core", shared_memory_per_core),
      F("threads_per_core_limit", threads_per_core_limit),
      F("core_count", core_count),
      F("fpus_per_core", fpus_per_core),
      F("block_dim_limit_x", block_dim_limit_x),
      F("block_dim_limit_y", block_dim_limit_y),
      F("block_dim_limit_z", block_dim_limit_z),
      F("memory_bandwidth", memory_bandwidth),
      F("l2_cache_size", l2_cache_bytes),
#undef F
  };
  for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
    double v;
    memcpy(&v, (const char *)t + fields[k].at, sizeof v);
    lw_buf_printf(b, "  %s: %.0f\n", fields[k].name, v);
  }
  /* All but 1 KiB a block, which the system keeps. */
  lw_buf_printf(b, "  shared_memory_per_block_optin: %.0f\n",
                t->gpu.shared_memory_per_core - 1024);
  lw_buf_printf(b, "  clock_rate_ghz: %.9g\n", t->gpu.clock_ghz);
  lw_buf_printf(b, "  cuda_compute_capability { major: %d minor: %d }\n", major,
                minor);
  lw_buf_printf(b, "  name: \"%s\"\n", t->name);
}

static void print_config(lw_buf *b, const lw_target *t, int major, int minor) {
  lw_buf_str(b, "gpu_device_info {\n");
  print_device(b, t, major, minor);
  lw_buf_str(b,
             "  device_memory_size: 84942979072\n"
             "  registers_per_core_limit: 65536\n"
             "  registers_per_block_limit: 65536\n"
             "  thread_dim_limit_x: 1024\n"
             "  thread_dim_limit_y: 1024\n"
             "  thread_dim_limit_z: 64\n"
             "  device_vendor: \"NVIDIA Corporation\"\n"
             "  device_address_bits: 64\n"
             "  driver_version: \"13.0.0\"\n"
             "  runtime_version: \"13.0.0\"\n"
             "  compile_time_toolkit_version: \"13.0.0\"\n"
             "  dnn_version: \"9.10.0\"\n"
             "}\n"
             "platform_name: \"CUDA\"\n"
             "dnn_version_info { major: 9 minor: 10 patch: 0 }\n");
  lw_buf_printf(b, "device_description_str: \"%s\"\n", t->name);
}

static lw_status unknown_target(const char *name, lw_status why) {
  const char *names[64];
  size_t n = 0;
  names[n++] = "cpu";
  for (int k = 0; k < N_TPUS; k++) names[n++] = tpus[k];
  for (int k = 0; k < lw_target_builtin_count() && n < 64; k++)
    names[n++] = lw_target_builtin_name(k);
  const char *near = lw_nearest_name(name, names, n);
  if (!near || strchr(name, '/')) return why;
  lw_status_free(why);
  return lw_error(LW_NOT_FOUND,
                  "XLA has no target \"%s\"; did you mean \"%s\"?", name, near);
}

/* A Lawson target that is a GPU, or why XLA has none like it. */
static lw_status gpu_target(const char *name, lw_xla_target *out) {
  lw_target *t;
  lw_status st = lw_target_load(name, &t);
  if (st) return unknown_target(name, st);
  int major, minor;
  if (strcmp(t->backend_name, "gpu")) {
    st = lw_error(LW_NOT_FOUND,
                  "target %s is a CPU; XLA:CPU compiles for the machine it "
                  "runs on: --target=cpu",
                  name);
  } else if (!capability(t->isa, &major, &minor)) {
    st = lw_error(LW_NOT_FOUND,
                  "target %s (%s): XLA from PyPI compiles for NVIDIA's GPUs "
                  "only",
                  name, t->isa);
  } else {
    out->backend = "gpu";
    print_config(&out->device, t, major, minor);
  }
  lw_target_free(t);
  return st;
}

lw_status lw_xla_target_of(const char *target, lw_xla_target *t) {
  *t = (lw_xla_target){.backend = "cpu"};
  if (!target || !strcmp(target, "cpu")) return NULL;
  if (is_tpu(target)) {
    t->backend = "tpu";
    lw_buf_printf(&t->device, "%s:1x1", target);
    return NULL;
  }
  return gpu_target(target, t);
}

void lw_xla_target_free(lw_xla_target *t) { lw_buf_free(&t->device); }
