// MSCCL++ JSON: execution plans in the format of microsoft/mscclpp and its DSL.
#pragma once

#include <string_view>

#include "formats/imported.h"

namespace tutti::formats {

/// Reads plans that move whole chunks between the memories of ranks: operations put, pws, pwsf, get, copy, re, res,
/// rre, rres, signal, wait, rlxsignal, rlxwait, flush, barrier and nop, over memory and port channels. Refuses, with
/// name and place: packets (data that contain flags), switch channels, pipelines, semaphores, thread-block groups,
/// collectives other than allreduce, allgather, reducescatter, reduce, broadcast and alltoall.
///
/// A signal matches the peer's wait with the same count on the channel with the same number between the two. An
/// operation is considered complete when the next one of its thread block begins. `root`: for reduce and broadcast, as
/// the format has no such field. Errors: invalid_argument with the path of names and indices.
Result<Imported> import_mscclpp(std::string_view text, Rank root = 0);

}  // namespace tutti::formats
