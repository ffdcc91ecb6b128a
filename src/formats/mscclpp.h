// MSCCL++ JSON: execution plans as microsoft/mscclpp runs them and its DSL writes them.
#pragma once

#include <string_view>

#include "formats/imported.h"

namespace tutti::formats {

/// Reads plans that move whole chunks between the memories of ranks: operations put, pws, pwsf, get, copy, re, res,
/// rre, rres, signal, wait, rlxsignal, rlxwait, flush, barrier and nop, over memory and port channels. Refused, by name
/// and place: packets (data with flags in them), switch channels, pipelines, semaphores, thread-block groups,
/// collectives other than allreduce, allgather, reducescatter, reduce, broadcast and alltoall.
///
/// A signal is awaited by the peer's wait of the same number on the channel of the same number between the two. An
/// operation is taken to be complete when the next one of its thread block begins. `root`: of reduce and broadcast, for
/// the format has no such field. Errors: invalid_argument with the path of names and indices.
Result<Imported> import_mscclpp(std::string_view text, Rank root = 0);

}  // namespace tutti::formats
