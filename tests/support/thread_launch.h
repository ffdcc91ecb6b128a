// Blocks of real threads for a launch.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "support/host_bodies.h"
#include "support/thread_block.h"

namespace tutti::testing {

/// perform_one(block, its shared memory) on so many threads for each block of the launch. Returns when all have.
template <class B, class Perform>
void with_threads(const Launch& launch, int threads, Perform perform_one) {
  struct Team {
    BlockTeam team;
    BodyShared shared;
    explicit Team(int size) : team(size) {}
  };
  std::vector<std::unique_ptr<Team>> teams;
  std::vector<std::thread> all;
  for (int block = 0; block < launch.blocks(); ++block) teams.push_back(std::make_unique<Team>(threads));
  for (int block = 0; block < launch.blocks(); ++block)
    for (int thread = 0; thread < threads; ++thread)
      all.emplace_back([&, block, thread] {
        Team& team = *teams[static_cast<std::size_t>(block)];
        B b(team.team, thread, block);
        perform_one(b, team.shared);
      });
  for (std::thread& thread : all) thread.join();
}

}  // namespace tutti::testing
