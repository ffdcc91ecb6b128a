// Upper bounds that several modules rely on.
#pragma once

#include <cstddef>

namespace tutti::limits {

inline constexpr int ranks_max = 65535;             // Place::peer is 16 bits
inline constexpr int sources_max = 16;              // inputs of one reduction pass (spine: longer ones are chains)
inline constexpr int channels_max = 8;              // channels of one communicator
inline constexpr std::size_t line_bytes = 64;       // what one core takes from another at once
inline constexpr int call_descriptors = 16;         // calls a rank may run ahead, twice over
inline constexpr std::size_t pass_bytes = 1 << 20;  // a pass is cut here, so that a revoke is seen within a millisecond

}  // namespace tutti::limits
