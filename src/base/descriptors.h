// How many descriptors this process may have open.
#pragma once

#include <cstdint>

namespace tutti {

struct DescriptorLimit {
  std::uint64_t before = 0;
  std::uint64_t now = 0;
};

/// Raises the soft limit to the hard one, which any process may: connections to many ranks take more than the usual
/// 1,024. What cannot be raised stays as it is.
DescriptorLimit raise_descriptor_limit();

}  // namespace tutti
