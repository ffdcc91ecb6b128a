// Reads a plan file, in one of the supported formats or in any.
#pragma once

#include <string_view>

#include "formats/imported.h"

namespace tutti::formats {

/// MSCCL XML, the format of microsoft/msccl and its tools. Reads any plan of the `<algo><gpu><tb><step>` form: steps s,
/// r, rcs, rrs, rrc, rrcs, cpy, re and nop; collectives allreduce, allgather, reduce_scatter, reduce, broadcast and
/// alltoall; in place (inplace without outofplace) or not. The k-th send of a rank to a peer on a channel matches the
/// peer's k-th receive. A sequence of `re` into one chunk is one reduction, as the runtime fuses it. `<copy>` of a
/// `<gpu>` is made before its steps. `root`: for reduce and broadcast, if the file has no attribute of that name (which
/// is tutti's own; the format has none). Errors: invalid_argument with line, gpu, tb and step.
Result<Imported> import_msccl(std::string_view text, Rank root = 0);

/// MSCCL++ JSON, execution plans in the format of microsoft/mscclpp and its DSL. Reads plans that move whole chunks
/// between the memories of ranks: operations put, pws, pwsf, get, copy, re, res, rre, rres, signal, wait, rlxsignal,
/// rlxwait, flush, barrier and nop, over memory and port channels. Refuses, with name and position: packets (data that
/// contain flags), switch channels, pipelines, semaphores, thread-block groups, collectives other than allreduce,
/// allgather, reducescatter, reduce, broadcast and alltoall.
///
/// A signal matches the peer's wait with the same count on the channel with the same number between the two. An
/// operation is considered complete when the next one of its thread block begins. `root`: for reduce and broadcast, as
/// the format has no such field. Errors: invalid_argument with the path of names and indices.
Result<Imported> import_mscclpp(std::string_view text, Rank root = 0);

/// MSCCL XML or MSCCL++ JSON, distinguished by the first character. `root`: as in import_msccl. Errors: those of both
/// formats.
Result<Imported> import_plan(std::string_view text, Rank root = 0);

}  // namespace tutti::formats
