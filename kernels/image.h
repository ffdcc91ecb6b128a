// The compiled kernels as bytes inside the library, to be loaded by a driver.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/entries.h"
#include "plan/types.h"

namespace tutti {

/// The image (a fat binary: machine code for several processors, and PTX for later ones) that contains the entry of
/// this body and type. Empty if the library was built without a CUDA compiler. Valid forever.
std::span<const std::byte> kernel_image(device::Body body, DataType type);

}  // namespace tutti
