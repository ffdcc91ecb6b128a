// What tutti-plan simulate simulates, and on which network.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "analysis/simulator/loggops.h"
#include "analysis/simulator/machine.h"
#include "analysis/simulator/network.h"
#include "analysis/simulator/simulate.h"
#include "analysis/simulator/uniform.h"
#include "base/error.h"
#include "plan/schedule.h"

namespace tutti::tool {

struct NetworkOptions {
  std::string topology;
  std::string model;
  std::string alpha = "1us";
  std::string rate = "100GB/s";
  std::string sums;
  std::string loggops;
  int ports = 1;
};

void add_network(CLI::App& command, NetworkOptions& options);

/// A model of a network with all its parameters.
struct Network {
  std::optional<simulator::Machine> machine;  ///< unless the network is uniform or LogGOPS
  simulator::Sharing sharing = simulator::Sharing::fair;
  std::optional<simulator::LogGops> loggops;
  simulator::Uniform uniform;
  double reduce_ns_per_byte = 0;
  std::string text;

  int ranks(int otherwise) const;  ///< of the machine, if there is one
  std::vector<simulator::Cut> cuts(int ranks) const;
  std::unique_ptr<simulator::Wire> wire(int endpoints) const;
};

/// `ranks`: the required number; 0: any. Errors: invalid_argument.
Result<Network> make_network(const NetworkOptions& options, int ranks);

/// The messages of one algorithm, for any size.
struct Traffic {
  std::string name;
  Collective collective = Collective::all_reduce;
  int ranks = 0;
  std::function<std::unique_ptr<simulator::MessageSource>(double bytes)> messages;
};

/// A pattern if there is one, otherwise a schedule; without a name, the algorithm that a call of 1 MiB through slots
/// would use. The schedule is not proven here: the tests prove those of all algorithms. Errors: invalid_argument.
Result<Traffic> traffic_of_algorithm(const std::string& name, const Shape& shape, const Network& network);
Traffic traffic_of_schedule(std::string name, Schedule schedule);

/// The algorithms made for this machine.
std::vector<std::string> machine_algorithms(const Network& network, Collective collective);

}  // namespace tutti::tool
