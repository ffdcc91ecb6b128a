// The part of NVIDIA's management library that tutti uses, loaded at run time: no NVIDIA header is needed.
#pragma once

#include <cstdint>
#include <string>

#include "base/dylib.h"
#include "base/error.h"

namespace tutti::topology::nvml {

// Types and numbers of nvml.h, which NVIDIA keeps stable.
using Handle = void*;

struct PciInfo {  // nvmlPciInfo_t
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

struct FieldValue {  // nvmlFieldValue_t
  unsigned field = 0, scope = 0;
  long long timestamp = 0, latency_us = 0;
  unsigned value_type = 0;
  int result = 0;
  union {
    double number;
    unsigned whole;
    unsigned long long large = 0;
  } value;
};

struct FabricInfo {  // nvmlGpuFabricInfo_v2_t
  unsigned version = 0;
  unsigned char cluster[16] = {};
  int status = 0;
  unsigned clique = 0;
  unsigned char state = 0;
  unsigned health = 0;
};

enum Code : int { success = 0, invalid_argument = 2, not_supported = 3, driver_not_loaded = 9, not_there = 13 };
enum Remote : int { remote_gpu = 0, remote_cpu = 1, remote_switch = 2 };
enum Field : unsigned { nvlink_state = 165, c2c_count = 170, c2c_status = 171, c2c_mbps = 172 };
enum Fabric : unsigned char { fabric_none = 0, fabric_completed = 3 };
inline constexpr unsigned capability_p2p = 0, links_max = 36;
inline constexpr int p2p_read = 0, p2p_write = 1;

/// If a function does not exist, as in old drivers, its pointer is null.
struct Functions {
  Dylib loaded;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_count)(unsigned*) = nullptr;
  int (*handle_by_index)(unsigned, Handle*) = nullptr;
  int (*pci_info)(Handle, PciInfo*) = nullptr;
  int (*compute_capability)(Handle, int*, int*) = nullptr;
  int (*pcie_generation)(Handle, unsigned*) = nullptr;
  int (*pcie_width)(Handle, unsigned*) = nullptr;
  int (*cpu_affinity)(Handle, unsigned, unsigned long*) = nullptr;
  int (*memory_node)(Handle, unsigned*) = nullptr;
  int (*link_state)(Handle, unsigned, int*) = nullptr;
  int (*link_capability)(Handle, unsigned, unsigned, unsigned*) = nullptr;
  int (*link_version)(Handle, unsigned, unsigned*) = nullptr;
  int (*remote_type)(Handle, unsigned, int*) = nullptr;
  int (*remote_pci_info)(Handle, unsigned, PciInfo*) = nullptr;
  int (*field_values)(Handle, int, FieldValue*) = nullptr;
  int (*fabric_info)(Handle, FabricInfo*) = nullptr;
  int (*p2p_status)(Handle, Handle, int, int*) = nullptr;
  int (*common_ancestor)(Handle, Handle, int*) = nullptr;
  int (*mig_mode)(Handle, unsigned*, unsigned*) = nullptr;
  int (*mig_count)(Handle, unsigned*) = nullptr;
  int (*mig_handle)(Handle, unsigned, Handle*) = nullptr;

  /// Errors: system, invalid_argument (there is no such library).
  static Result<Functions> load(const std::string& path);
};

/// The result of `function`; not_there if it is null.
template <class... Parameters, class... Arguments>
int ask(int (*function)(Parameters...), Arguments... arguments) {
  return function ? function(arguments...) : static_cast<int>(not_there);
}

/// "error 15: the GPU is lost"
std::string text_of(int code);

}  // namespace tutti::topology::nvml
