// An MSCCL XML file as a data structure: all numbers checked, but not yet interpreted.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/schedule.h"

namespace tutti::formats {

enum class MscclType : std::uint8_t { s, r, rcs, rrs, rrc, rrcs, cpy, re, nop };
constexpr bool sends(MscclType t) {
  return t == MscclType::s || t == MscclType::rcs || t == MscclType::rrs || t == MscclType::rrcs;
}
constexpr bool receives(MscclType t) {
  return t == MscclType::r || t == MscclType::rcs || t == MscclType::rrs || t == MscclType::rrc || t == MscclType::rrcs;
}
/// Whether the step reads chunks in its own rank's memory, and whether it writes there.
constexpr bool reads_own(MscclType t) {
  return t != MscclType::r && t != MscclType::rcs && t != MscclType::nop;
}
constexpr bool writes_own(MscclType t) {
  return t != MscclType::s && t != MscclType::rrs && t != MscclType::nop;
}

struct MscclStep {
  int line = 0;
  MscclType type = MscclType::nop;
  Ref src, dst;  // block: the first chunk
  int count = 0;
  int wait_block = -1;  // depid
  int wait_step = -1;   // deps
  bool waited_for = false;
};

struct MscclBlock {
  int line = 0;
  Rank send = -1;
  Rank recv = -1;
  int channel = 0;
  std::vector<MscclStep> steps = {};
};

/// `<copy i_off o_off>` of TACCL and TE-CCL: a chunk of the input that the rank's output needs too.
struct MscclCopy {
  int line = 0;
  int from = 0;  // chunk of the input
  int to = 0;    // chunk of the output
};

struct MscclGpu {
  int scratch_chunks = 0;
  std::vector<MscclCopy> copies = {};   // made before all steps
  std::vector<MscclBlock> blocks = {};  // by id
};

struct MscclFile {
  std::string name;
  Shape shape;
  int parts = 1;
  bool in_place = false;
  long long bytes_min = 0;
  long long bytes_max = std::numeric_limits<long long>::max();
  std::vector<MscclGpu> gpus = {};  // by id
};

/// Every number is in range, and every reference has a target; chunks are not checked.
Result<MscclFile> parse_msccl(std::string_view text, Rank root);

}  // namespace tutti::formats
