// Upper bounds that several modules rely on.
#pragma once

#include <cstddef>

namespace tutti::limits {

inline constexpr int ranks_max = 65535;  // Place::peer is 16 bits
// inputs of one reduction pass (longer reductions are chains of passes)
inline constexpr int sources_max = 16;
// blocks of one message: slots hold at least a cache line of each; longer messages are cut
inline constexpr int items_max = 256;
inline constexpr int channels_max = 8;         // channels of one communicator
inline constexpr std::size_t line_bytes = 64;  // the unit of transfer between cores: a cache line
// twice the number of calls that a rank may run ahead: with what is published in descriptors alone, and with payloads
inline constexpr int call_descriptors = 64;
inline constexpr int call_payloads = 16;  // divides call_descriptors
// a pass is split at this size, so that a revoke is seen within a millisecond
inline constexpr std::size_t pass_bytes = 1 << 20;

}  // namespace tutti::limits
