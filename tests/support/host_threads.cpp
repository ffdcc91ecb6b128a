// Kernels on real threads.
#include <thread>

#include "support/host_bodies.h"
#include "support/thread_block.h"

namespace tutti::testing {
namespace {

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

}  // namespace

void run_on_threads(const Launch& launch, int threads) {
  with_threads<ThreadBlock<>>(launch, threads, [&](auto& b, BodyShared& s) { perform(b, s, launch); });
}

bool launch_by_name(std::string_view entry, const device::Call& call, int threads) {
  for (const device::Body body : device::bodies)
    for (int type = 0; type < data_type_count; ++type)
      if (entry == device::entry_name(body, static_cast<DataType>(type))) {
        run_on_threads({.body = body, .type = static_cast<DataType>(type), .call = &call}, threads);
        return true;
      }
  return false;
}

}  // namespace tutti::testing
