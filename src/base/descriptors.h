// The limit of descriptors that this process may have open.
#pragma once

#include <cstdint>

namespace tutti {

struct DescriptorLimit {
  std::uint64_t before = 0;
  std::uint64_t now = 0;
};

/// Raises the soft limit to the hard limit, which any process may do: connections to many ranks need more than the
/// usual 1,024. A limit that cannot be raised stays as it is.
DescriptorLimit raise_descriptor_limit();

}  // namespace tutti
