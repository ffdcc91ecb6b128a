// GB/s in each direction where no source reports a rate: the constants of NCCL 2.30 (src/graph/topo.h) and RCCL.
#pragma once

#include "topology/graph/topology.h"

namespace tutti::topology::rates {

inline constexpr double local = 5000;

/// One NVLink of a GPU with this compute capability (sm).
inline double nvlink(int sm) {
  if (sm >= 100) return 40.1;
  if (sm >= 90) return 20.6;
  if (sm == 86) return 12;
  if (sm >= 60 && sm < 70) return 18;
  return 20;
}

/// One xGMI link of gfx908, gfx90a, gfx942, ….
inline double xgmi(int gfx) {
  if (gfx >= 940) return 48;
  return gfx == 910 ? 36 : 24;  // 90a is stored as 910
}

/// Between two CPUs.
inline double cpu(CpuMaker maker, int model) {
  switch (maker) {
    case CpuMaker::intel: return model >= 0xCF ? 40 : model >= 0x8F ? 22 : model >= 0x55 ? 10 : 6;
    case CpuMaker::amd: return 16;
    case CpuMaker::power: return 32;
    case CpuMaker::arm:
    case CpuMaker::zhaoxin: return 6;
    case CpuMaker::unknown: break;
  }
  return 10;
}

inline constexpr double network = 12;  // a NIC of unknown rate

}  // namespace tutti::topology::rates
