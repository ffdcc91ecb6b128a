// Calls on intercommunicators: every rank exchanges blocks with ranks of the other group. A rank of the root's group
// that is not the root takes part with nothing.
#pragma once

#include "adapters/mpi/prepare.h"

namespace tutti::mpi::between {

Prepared bcast(Call& call, const RankInfo& place, const Buffer& data, int root);
Prepared gather(Call& call, const RankInfo& place, const Buffer& send, const Buffer& recv, int root);
Prepared scatter(Call& call, const RankInfo& place, const Buffer& send, const Buffer& recv, int root);
Prepared allgather(Call& call, const RankInfo& place, const Buffer& send, const Buffer& recv);
Prepared alltoall(Call& call, const RankInfo& place, const Buffer& send, const Buffer& recv);
Prepared gatherv(Call& call, const RankInfo& place, const Buffer& send, const Buffers& recv, int root);
Prepared scatterv(Call& call, const RankInfo& place, const Buffers& send, const Buffer& recv, int root);
Prepared allgatherv(Call& call, const RankInfo& place, const Buffer& send, const Buffers& recv);
Prepared alltoallv(Call& call, const RankInfo& place, const Buffers& send, const Buffers& recv);
Prepared allreduce(Call& call, const RankInfo& place, const Reduce& reduce);
Prepared reduce(Call& call, const RankInfo& place, const Reduce& reduce, int root);

}  // namespace tutti::mpi::between
