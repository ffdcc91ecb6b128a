// Chakra execution traces: what ASTRA-sim plays, also as a custom collective.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/traffic.h"

namespace tutti::formats {

/// The bytes of one `.et` file for each rank: a GlobalMetadata and one Node for each thing to do, every message behind
/// its length (mlcommons/chakra, schema/protobuf/et_def.proto). Sends and receives have comm_size (bytes), comm_dst or
/// comm_src, and the step as comm_tag; work has its whole microseconds. Errors: as `traffic`.
Result<std::vector<std::string>> export_chakra(const Schedule& schedule, const TrafficSize& size,
                                               std::string_view name);

}  // namespace tutti::formats
