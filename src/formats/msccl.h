// MSCCL XML: algorithms in the format of microsoft/msccl and its tools.
#pragma once

#include <string>
#include <string_view>

#include "formats/imported.h"

namespace tutti::formats {

/// Reads any plan of the `<algo><gpu><tb><step>` form: steps s, r, rcs, rrs, rrc, rrcs, cpy, re and nop; collectives
/// allreduce, allgather, reduce_scatter, reduce, broadcast and alltoall; in place (inplace without outofplace) or not.
/// The k-th send of a rank to a peer on a channel matches the peer's k-th receive. A sequence of `re` into one chunk is
/// one reduction, as the runtime fuses it. `<copy>` of a `<gpu>` is made before its steps. `root`: for reduce and
/// broadcast, if the file has no attribute of that name (which is tutti's own; the format has none). Errors:
/// invalid_argument with line, gpu, tb and step.
Result<Imported> import_msccl(std::string_view text, Rank root = 0);

}  // namespace tutti::formats
