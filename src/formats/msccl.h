// MSCCL XML: algorithms as microsoft/msccl runs them and its tools write them.
#pragma once

#include <string>
#include <string_view>

#include "formats/imported.h"

namespace tutti::formats {

/// Reads any plan of the `<algo><gpu><tb><step>` form: steps s, r, rcs, rrs, rrc, rrcs, cpy, re and nop; collectives
/// allreduce, allgather, reduce_scatter, reduce, broadcast and alltoall; in place (inplace without outofplace) or not.
/// The k-th send of a rank to a peer on a channel meets the peer's k-th receive. A run of `re` into one chunk is one
/// reduction, as the runtime fuses it. `root`: of reduce and broadcast, where the file has no attribute of that name
/// (which is ours; the format has none). Errors: invalid_argument with line, gpu, tb and step.
Result<Imported> import_msccl(std::string_view text, Rank root = 0);

/// The same form, out of place, one channel: a thread block for each peer and direction and one for local work, so that
/// every send is posted as early as its data allow. Errors: invalid_argument, where MSCCL has no such collective or the
/// schedule cannot be made step by step (lowers_to fifo).
Result<std::string> export_msccl(const Schedule& schedule, std::string_view name);

}  // namespace tutti::formats
