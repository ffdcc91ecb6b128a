// Calls on intercommunicators: every rank exchanges blocks with ranks of the other group. A rank of the root's group
// that is not the root takes part with nothing.
#pragma once

#include "adapters/mpi/prepare.h"

namespace tutti::mpi::between {

Prepared bcast(Call& call, const RankInfo& place, const Buffer& data, int root);
/// As prepare_with_root, where the ranks of the other group have a block each.
template <class All>
Prepared with_root(Call& call, const RankInfo& place, const All& all, Side& whole, const Buffer& own, Side& part,
                   int root);
template <class All>
Prepared allgather(Call& call, const RankInfo& place, const Buffer& send, const All& recv);
template <class All>
Prepared alltoall(Call& call, const RankInfo& place, const All& send, const All& recv);
Prepared allreduce(Call& call, const RankInfo& place, const Reduce& reduce);
Prepared reduce(Call& call, const RankInfo& place, const Reduce& reduce, int root);

}  // namespace tutti::mpi::between
