// By which names a device's port is known in the fabric.
#pragma once

#include "fabric.h"
#include "settings.h"

namespace tutti::testing::fake_verbs {

PortIdentity identity_of(const Settings& settings, int device);
verbs::GidType type_of(const Settings& settings, std::uint32_t index);

}  // namespace tutti::testing::fake_verbs
