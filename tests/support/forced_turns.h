// Every algorithm that fits a number of ranks, forced by TUTTI_ALGO in as few starts as possible.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "support/call.h"
#include "support/launch_ranks.h"

namespace tutti::testing {

/// Members of all families, one for each collective at most: what one start of ranks can be forced to use.
using Turn = std::map<Collective, const Algorithm*>;
/// `hosts`: by rank, the first rank of its host, where there are several hosts of which some have several ranks.
std::vector<Turn> turns_of(int ranks, const std::vector<int>& hosts = {});
/// As many turns, each with every collective: those that have fewer algorithms begin again.
std::vector<Turn> full_turns_of(int ranks, const std::vector<int>& hosts = {});
/// "TUTTI_ALGO=allreduce:ring;…"
std::string setting(const Turn& turn);

/// Calls of all collectives of the turn, on one rank: right results, by the algorithm that was forced where it serves.
/// On slots of 4 KiB the larger ones are cut into many tiles. `hosts`: as in turns_of. Fails the test. Words of the
/// board, turn_words of them: how many calls used what they were forced to, by Access; then the bits of all-reduces, by
/// rank.
void run_turn(Seat& seat, tuttiComm_t comm, const Turn& turn, Mix memory, const std::vector<int>& hosts = {});
std::size_t turn_words(int ranks);
/// After all have ended: all ranks have the same bits. Fails the test.
void expect_same_bits(Workers& workers, int ranks, const std::string& what);

}  // namespace tutti::testing
