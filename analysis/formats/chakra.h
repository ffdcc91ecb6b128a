// Chakra execution traces: the input of ASTRA-sim, also for custom collectives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/formats/traffic.h"

namespace tutti::formats {

/// The bytes of one `.et` file per rank: a GlobalMetadata and one Node per operation, every message preceded by its
/// length (mlcommons/chakra, schema/protobuf/et_def.proto). Sends and receives have comm_size (bytes), comm_dst or
/// comm_src, and the step as comm_tag; work has its time in whole microseconds. Errors: as `traffic`.
Result<std::vector<std::string>> export_chakra(const Schedule& schedule, const TrafficSize& size,
                                               std::string_view name);

}  // namespace tutti::formats
