// The compiled kernels, as bytes inside the library: what a driver loads.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/entries.h"
#include "plan/types.h"

namespace tutti {

/// The image (a fat binary: machine code of several processors, and PTX for later ones) that has the entry of that body
/// and type. Empty where the library was built without a CUDA compiler. Lives for ever.
std::span<const std::byte> kernel_image(device::Body body, DataType type);

}  // namespace tutti
